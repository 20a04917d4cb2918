"""What a caller gives: the rules of a round, and the options of a run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from compactor.api.bounds import Natural, Niceness, Positive
from compactor.planning.order import Order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The options that `plan`, `run`, `recover` and `explain` share, as on the command line.

    A call reads each file once, so that it may be a pipe.
    """

    config: str | None = None  # file of defaults and settings by pattern, TOML
    # settings by topic: a file of JSON, or what would stand there
    topic_configs: str | Mapping[str, Mapping[str, Any]] | None = None
    # topics for which `topic_configs` decides against their own entry in the metadata log
    trust_topic_configs: Collection[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # for every topic; precede all files
    include: str | None = None  # regular expression over whole names of topics; None: every one
    exclude: str | None = None  # wins over include
    as_of: str | int | datetime | None = None  # ISO 8601, or ms since 1970; None: the present
    any_clock: bool = False  # accept a doubtful as_of, and logs written after it
    assume_fully_replicated: bool = False  # the end of each log is its high watermark
    metadata: str | None = None  # a metadata log, or a directory with one; None: as given
    no_metadata: bool = False  # take no notice of a metadata log
    server_properties: str | None = None  # file of the broker's static settings
    kafka: str | None = None  # whose answer; None: by the broker's software, else the newest
    all_log_dirs_given: bool = False  # even if the metadata log knows of more
    max_logs: int | None = None  # how much a run takes on at most, whole logs in `order`
    max_bytes: int | None = None  # of `.log` files that are read and rewritten
    max_minutes: float | None = None  # by the speed of earlier runs on this machine, and its own
    order: Order = Order.GAIN
    # topic and partition of logs to be cleaned whatever part of them is dirty; no option says so
    due: Collection[tuple[str, int]] = ()
    # every log holds what a manager has put into it: a gap is no missing segment; no option says so
    known_whole: bool = False
    # of logs whose checkpoint has another number, by topic and partition; no option says so
    high_watermarks: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `run` alone, as on the command line."""

    dry_run: bool = False
    plan: str | None = None  # a file of `plan(save=…)`: carry that out, by its own rules and clock
    map_capacity: Positive | None = None  # stop where Kafka's cleaner with such a map would
    recover_first: bool = False  # after an unclean shutdown, which is refused otherwise
    fail_on_corrupt: bool = False  # end the run at damaged data, instead of setting its log aside
    retry: bool = False  # also try unchanged logs that earlier runs have set aside
    exact_bytes: bool = False  # refuse where compressed bytes could be others than Kafka's
    drop_null_keys: bool = False  # also clean logs where most records to be removed have no key
    allowed_file_systems: tuple[str, ...] = ()  # where a lock may not exclude a broker elsewhere
    keep_originals: str | None = None  # directory for what is replaced or deleted, for `undo`
    wait_seconds: Natural = 0  # for locks that another run, or a broker, holds; 0: refused at once
    keep_for_ms: Natural | None = None  # first discard there what runs kept that began longer ago
    work_dir: str | None = None  # None: in the system's temporary directory
    master: str | None = None  # of Spark; None: that of spark-submit, or all cores of this host
    executor_paths: tuple[tuple[str, str], ...] = ()  # a directory, and its name on executors
    session: "SparkSession | None" = None  # to use, and to leave open; else the run makes its own
    output: tuple[str, ...] = ()  # for each log directory the place of a copy to be cleaned instead
    compacted_only: bool = False  # copy no other logs
    link: bool = False  # link large files instead of copying them: no broker may start there
    io_limit: Positive | None = None  # bytes a second, read and written, on each host in all
    nice: Niceness | None = None  # of Spark's tasks, and of this process and all that it starts
    in_process: bool = False  # tasks in this process, one after another, and no Spark: small logs
    retention: bool = (
        True  # delete what the topic's retention says, and what is below the log start
    )


KAFKAS_DEFAULTS = Rules()
ONE_ROUND = RunOptions()
