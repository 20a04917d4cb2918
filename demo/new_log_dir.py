"""A new log directory, as a broker leaves it: logs, and what a broker keeps beside them.

    with new_log_dir("/data/kafka", "my-cluster") as manager:
        manager.create(("prices", 0)).append_as_leader(batch)

The log manager writes the logs and their checkpoints. The identity of the directory, the ids of the
topics and the high watermarks are here. Source: Kafka, Formatter, ReplicaManager; spec F-13, F-15.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID, uuid5

from storage.files.local import LOCAL
from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.log.log_config import LogConfig
from storage.log.log_manager import LogManager
from storage.log.manager_options import BY_HAND, ManagerOptions, now_ms
from storage.log.scheduler import ManualScheduler

_OF_IDS = UUID("6f1c6b8e-3f0a-5a7e-9d53-4c1f0e6d2b90")  # for ids that are the same each time
_NODE_ID = 1
_DEFAULTS = LogConfig()


@contextmanager
def new_log_dir(
    path: str,
    cluster_id: str,
    config: LogConfig = _DEFAULTS,
    clock: Callable[[], int] = now_ms,
) -> Iterator[LogManager]:
    """Yield the manager of a log directory that does not exist yet or is empty.

    Raise FileExistsError for any other. config: of every topic; `LogManager.configure_topic` is for
    single ones. clock: in ms. Where the `with` ends well, the directory is one of a broker that was
    shut down cleanly. After an error there is no marker of that.
    """
    if LOCAL.is_directory(path) and LOCAL.list_directory(path):
        raise FileExistsError(f"{path} is not empty")
    scheduler = ManualScheduler(clock)
    options = ManagerOptions(config=config, clock=clock, scheduler=scheduler, intervals=BY_HAND)
    with LogManager([path], options) as manager:
        directory = uuid5(_OF_IDS, f"{cluster_id} {_NODE_ID} {os.path.abspath(path)}")
        directory_id = partition_metadata.encode_uuid(directory)
        meta_properties.write(path, MetaProperties(1, cluster_id, _NODE_ID, directory_id), LOCAL)
        yield manager
        for (topic, _), log in manager.logs.items():
            log.follow_end()
            metadata = PartitionMetadata(0, uuid5(_OF_IDS, topic))
            partition_metadata.write(os.path.join(log.path, PARTITION_METADATA), metadata, LOCAL)
        marks = {partition: log.high_watermark for partition, log in manager.logs.items()}
        checkpoint.write(os.path.join(path, checkpoint.REPLICATION), marks, LOCAL)
