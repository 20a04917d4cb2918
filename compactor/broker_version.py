"""Whether the metadata log that says which Kafka the broker is can be believed about that.

It is not where it is older than any log of the broker: an upgrade may have come since.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compactor.cluster_settings import ClusterSettings
from compactor.settings_sources import LOG_LAG_MS
from storage.files.files import Files
from storage.kafka_versions import nobody_knows
from storage.log.log_dir import PartitionListing, list_log_dir


def without_old_version(
    cluster: ClusterSettings, log_dirs: Sequence[str], files: Files, now_ms: int
) -> ClusterSettings:
    """Forget the version of the broker where a log contradicts the metadata log (V-1)."""
    metadata = cluster.metadata
    if metadata is None or cluster.node_id not in metadata.broker_versions or cluster.doubt:
        return cluster
    if not metadata.is_snapshot_alone and now_ms <= metadata.time_ms + LOG_LAG_MS:
        return cluster  # no log can be of a later time
    for partition in _partitions(log_dirs, files):
        doubt = cluster.why_unproven(partition)
        if doubt is not None:
            why = f"of {partition.topic}-{partition.partition}: {doubt.text}"
            return replace(cluster, kafka=nobody_knows(why))
    return cluster


def _partitions(log_dirs: Sequence[str], files: Files) -> Iterator[PartitionListing]:
    for log_dir in log_dirs:
        try:
            yield from list_log_dir(log_dir, files, with_files=False).partitions
        except OSError:  # the command finds that
            continue
