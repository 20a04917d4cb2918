"""The parts of a log, made when it is opened: what is in its directory, loaded or begun.

Source: Kafka, UnifiedLog.create; spec L-25.
"""

from storage.files.file_pool import pooled
from storage.log.engine.epochs import LeaderEpochs
from storage.log.engine.loading import LogLoader
from storage.log.engine.local_log import LocalLog
from storage.log.engine.log_options import LogOptions
from storage.log.engine.parts import LogParts
from storage.log.engine.producer_manager import ProducerManager
from storage.log.engine.segment_values import LogPlace
from storage.log.engine.segments import LogSegments
from storage.log.engine.snapshot_files import SnapshotFiles
from storage.log.engine.watermarks import Watermarks


def opened_parts(path: str, options: LogOptions) -> LogParts:
    """Load the log in a directory of a partition, or begin one; its first marks are set.

    KafkaStorageError where files fail, and the log directory is offline then.
    """
    files = pooled(options.files, options.max_open_files)
    if not files.is_directory(path):
        files.make_directory(path)
    place = LogPlace(files, path, options.clock)
    local = LocalLog(place, LogSegments(), options.scheduler, options.directory)
    local.config = options.config
    made = options.directory.reported(
        f"loading {path}", files.knowing(path)(lambda: _loaded(local, options))
    )
    made.marks.set_log_start(made.marks.log_start)
    made.marks.update_first_unstable()
    return made


def _loaded(local: LocalLog, options: LogOptions) -> LogParts:
    files, path = local.files, local.place.path
    epochs = LeaderEpochs(files, path, options.scheduler)
    producers = ProducerManager(SnapshotFiles(files, path), options.producer_settings)
    try:
        offsets = LogLoader(local, options.state, epochs, producers).load()
    except BaseException:
        local.segments.close_handles()
        raise
    local.recovery_point = offsets.recovery_point
    local.set_end(offsets.end)
    return LogParts(
        local=local,
        marks=Watermarks(local, producers, offsets.log_start),
        producers=producers,
        epochs=epochs,
        scheduler=options.scheduler,
    )
