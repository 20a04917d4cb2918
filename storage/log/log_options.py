"""What a log is opened with: clock, scheduler, configuration, files, and what was known of it."""

from dataclasses import dataclass, field

from storage.files.files import Files
from storage.files.local import LOCAL
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.loading import LoadingState, LoadingWay
from storage.log.local_log import LogDirState
from storage.log.log_config import LogConfig
from storage.log.parts import Truncating, no_owner
from storage.log.producer_state_manager import ProducerStateManagerConfig
from storage.log.scheduler import Scheduler
from storage.log.segment_values import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """`directory` and `producer_settings` are shared by the logs of one log directory.

    max_open_files: of the log, however many segments it has; None: 500, or half of what the process
    may have open where that is less. files may be a FilePool, which logs that share it share with
    its own number.

    truncating: is entered before a truncation, without the log's lock, with the offset at which the
    log will end, and the base offset of the segment that will be the active one; None where no
    other is cut.
    """

    clock: Clock
    scheduler: Scheduler
    config: LogConfig = field(default_factory=LogConfig)
    files: Files = LOCAL
    max_open_files: int | None = None
    state: LoadingState = field(default_factory=LoadingState)
    producer_settings: ProducerStateManagerConfig = field(
        default_factory=ProducerStateManagerConfig
    )
    directory: LogDirState = field(default_factory=LogDirState)
    way: LoadingWay = field(default_factory=LoadingWay)
    truncating: Truncating = no_owner
    kafka: KafkaVersion = NEWEST  # whose answer is given where the versions differ
