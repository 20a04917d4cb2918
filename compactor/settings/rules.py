"""What a caller gives: the rules of a round, the options of a run, and those of other commands.

Each field with an option of the command line declares it, for parser, help and completion.
"""

from collections.abc import (
    Callable,
    Collection,
    Mapping,
)
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from compactor.settings.options import (
    CHANGE,
    CONFIGURATION,
    LOGS,
    SPARK,
    Natural,
    Niceness,
    Number,
    Positive,
    duration_ms,
    executor_path,
    master,
    option,
    options_of,
    rate_bytes,
    same_option,
    setting,
    size_bytes,
)
from storage.kafka_versions import BY_NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cleaner_jobs.local.worker_pool import Workers
    from compactor.offline_log.truncate import Outcome


class OnCorrupt(StrEnum):
    """What a run does about a damaged log."""

    SET_ASIDE = "set-aside"
    FAIL = "fail"


class Order(StrEnum):
    """Which logs come first, in a list and where a budget is not enough for all."""

    GAIN = "gain"  # most dirty bytes that a run would clean, whatever a sample says
    FILTHIEST = "filthiest"  # highest dirty ratio, which is Kafka's order
    SMALLEST = "smallest"  # fewest bytes in all
    OLDEST = "oldest"  # dirty for the longest time


class EngineChoice(StrEnum):
    """What runs the tasks of a round or an inspection."""

    AUTO = "auto"  # by the master, the session, Java and the size of the work
    LOCAL = "local"  # processes of this host
    SPARK = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The options that `plan`, `run`, `recover` and `explain` share, as on the command line.

    A call reads each file once, so that it may be a pipe.
    """

    # settings by topic: a file of JSON, or what would stand there
    topic_configs: str | Mapping[str, Mapping[str, Any]] | None = option(
        None,
        "FILE",
        "Settings of topics: the output of kafka-configs --describe --all, or "
        "JSON {topic: {name: value}}",
        CONFIGURATION,
    )
    # topics for which `topic_configs` decides against their own entry in the metadata log
    trust_topic_configs: Collection[str] = option(
        (),
        "TOPIC",
        "Let --topic-configs decide this topic's cleanup.policy against the "
        "metadata log. Repeatable",
        CONFIGURATION,
        is_repeated=True,
    )
    # file of defaults and settings by pattern, TOML
    config: str | None = option(
        None, "FILE", "Defaults, and settings of topics by pattern, as TOML", CONFIGURATION
    )
    # for every topic; precede all files
    settings: Mapping[str, str] = option(
        dict,
        "NAME=VALUE",
        "Setting for every topic, over all files. Repeatable. In plan and run, "
        "cleanup.policy=compact needs --include",
        CONFIGURATION,
        name="--set",
        read=setting,
        is_repeated=True,
    )
    # a metadata log, or a directory with one; None: as given
    metadata: str | None = option(
        None,
        "DIR",
        "Cluster metadata log (__cluster_metadata-0), or its directory. "
        "Default: the one of the log directories",
        CONFIGURATION,
    )
    # take no notice of a metadata log
    no_metadata: bool = option(
        False,
        "",
        "Ignore the cluster metadata log. Topics without other settings have no known policy",
        CONFIGURATION,
    )
    # file of the broker's static settings
    server_properties: str | None = option(
        None, "FILE", "The broker's server.properties, for its defaults of topics", CONFIGURATION
    )
    # whose answer; None: by the broker's software, else the newest
    kafka: str | None = option(
        None,
        "|".join(BY_NAME),
        "Give the answer of this Kafka. Default: the broker's version by the "
        "metadata log, else the newest",
        CONFIGURATION,
    )
    # regular expression over whole names of topics; None: every one
    include: str | None = option(None, "REGEX", "Only topics whose whole name matches", LOGS)
    # wins over include
    exclude: str | None = option(None, "REGEX", "Leave out topics whose whole name matches", LOGS)
    # ISO 8601, or ms since 1970; None: the present
    as_of: str | int | datetime | None = option(
        None,
        "TIME",
        "Time that counts as now: epoch milliseconds or ISO 8601 (UTC without a"
        " zone). Default: the clock",
        LOGS,
    )
    # accept a doubtful as_of, and logs written after it
    any_clock: bool = option(
        False,
        "",
        "Skip the clock checks: accept any --as-of, and logs that were written after the clock",
        LOGS,
    )
    # even if the metadata log knows of more
    all_log_dirs_given: bool = option(
        False,
        "",
        "Run even if the metadata log knows more log directories of this broker",
        LOGS,
    )
    # the end of each log is its high watermark
    assume_fully_replicated: bool = option(
        False,
        "",
        "Treat every record as replicated. Required where no checkpoint says how far logs are",
        LOGS,
    )
    # which logs come first
    order: Order = option(
        Order.GAIN,
        "ORDER",
        "Order: gain (dirty bytes), filthiest, smallest or oldest",
        LOGS,
        kind=Order,
    )
    # how much a run takes on at most, whole logs in `order`
    max_logs: int | None = option(
        None, "N", "Clean at most N logs, in --order", LOGS, kind=Number(1)
    )
    # of `.log` files that are read and rewritten
    max_bytes: int | None = option(
        None,
        "SIZE",
        "Read and rewrite at most this much, in whole logs, like 500GB",
        LOGS,
        read=size_bytes,
    )
    # by the speed of earlier runs on this machine, and its own
    max_minutes: float | None = option(
        None,
        "N",
        "Stop starting new logs when N minutes are likely to be exceeded",
        LOGS,
        kind=Number(0, is_whole=False),
    )
    # topic and partition of logs to be cleaned whatever part of them is dirty; no option says so
    due: Collection[tuple[str, int]] = ()
    # every log holds what a manager has put into it: a gap is no missing segment; no option says so
    known_whole: bool = False
    # of logs whose checkpoint has another number, by topic and partition; no option says so
    high_watermarks: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `run` alone, as on the command line."""

    # a file of `plan(save=…)`: carry that out, by its own rules and clock
    plan: str | None = option(
        None,
        "FILE",
        "Carry out a plan of plan --save, without LOG_DIR. Refused if a log of "
        "it has changed since",
        LOGS,
    )
    dry_run: bool = option(
        False,
        "",
        "Do everything except writing. The counts are those of a real run",
        LOGS,
    )
    # after an unclean shutdown, which is refused otherwise
    recover_first: bool = option(
        False,
        "",
        "After an unclean shutdown, recover first. Each run needs it until a "
        "broker has stopped cleanly",
        LOGS,
    )
    # end the run at damaged data, instead of setting its log aside
    fail_on_corrupt: bool = option(
        False,
        "",
        "A damaged log: set it aside, or fail before any log is swapped in",
        LOGS,
        name="--on-corrupt",
        kind=OnCorrupt,
        read=lambda _, choice: choice is OnCorrupt.FAIL,
    )
    # for locks that another run, or a broker, holds; 0: refused at once
    wait_seconds: Natural = option(
        0,
        "SECONDS",
        "Wait this long for another run or a broker to leave the log "
        "directories. Default: do not wait",
        LOGS,
        name="--wait",
        kind=Number(0, 7 * 86400, shows_most=False),
    )
    # also try unchanged logs that earlier runs have set aside
    retry: bool = option(
        False, "", "Also try unchanged logs that earlier runs have set aside", LOGS
    )
    # refuse where compressed bytes could be others than Kafka's
    exact_bytes: bool = option(
        False,
        "",
        "Refuse to clean if a codec's build is not that Kafka's. Default: clean, with a note",
        LOGS,
    )
    # also clean logs where most records to be removed have no key
    drop_null_keys: bool = option(
        False,
        "",
        "Also clean logs where most records to remove have no key. Default: set them aside",
        LOGS,
    )
    # where a lock may not exclude a broker elsewhere
    allowed_file_systems: tuple[str, ...] = option(
        (),
        "TYPE",
        "Also work on this type of file system, like nfs4, whose locks may not "
        "exclude a broker. Repeatable",
        LOGS,
        name="--allow-file-system",
        is_repeated=True,
    )
    # directory for what is replaced or deleted, for `undo`
    keep_originals: str | None = option(
        None,
        "DIR",
        "Keep replaced and deleted files in DIR/RUN_ID, for compactor undo",
        LOGS,
    )
    # first discard there what runs kept that began longer ago
    keep_for_ms: Natural | None = option(
        None,
        "TIME",
        "First discard what runs kept in that DIR that began longer ago than this, like 7d or 12h",
        LOGS,
        name="--keep-for",
        read=duration_ms,
    )
    # for each log directory the place of a copy to be cleaned instead
    output: tuple[str, ...] = option(
        (),
        "DIR",
        "Compact a copy in DIR, which is new or empty, instead of LOG_DIR. Once"
        " for each LOG_DIR, in order",
        LOGS,
        is_repeated=True,
    )
    # copy no other logs
    compacted_only: bool = option(
        False,
        "",
        "With --output: copy only the logs of compacted topics, and the metadata log",
        LOGS,
    )
    # link large files instead of copying them: no broker may start there
    link: bool = option(
        False,
        "",
        "With --output: hard-link closed segments instead of copying them. No "
        "broker may start there",
        LOGS,
    )
    # None: in the system's temporary directory
    work_dir: str | None = option(
        None,
        "DIR",
        "Directory for the run's own files, made if missing. On a cluster, all executors share it",
        SPARK,
    )
    engine: EngineChoice = option(
        EngineChoice.AUTO,
        "",
        "What runs tasks. Default: auto, which is spark with --master, under "
        "spark-submit and from 1 GiB of logs on, else local",
        SPARK,
        kind=EngineChoice,
    )
    # bytes of logs to read; None: SPARK_FROM_BYTES
    spark_from: Natural | None = option(
        None,
        "SIZE",
        "With --engine auto: use Spark from this much of logs to read on. Default: 1 GiB",
        SPARK,
        read=size_bytes,
    )
    # of Spark; None: that of spark-submit, or all cores of this host
    master: str | None = option(
        None,
        "URL",
        "Spark master. Default: that of spark-submit, or all cores of this host",
        SPARK,
        read=master,
    )
    # bytes a second, read and written, on each host in all
    io_limit: Positive | None = option(
        None,
        "RATE",
        "Read and write at most this much a second on each host, all processes "
        "together, like 200MB/s",
        SPARK,
        read=rate_bytes,
    )
    # of Spark's tasks, and of this process and all that it starts
    nice: Niceness | None = option(
        None,
        "N",
        "CPU and I/O priority (nice value) of the run, with Spark and its tasks",
        SPARK,
        kind=Number(0, 19),
    )
    # a directory, and its name on executors
    executor_paths: tuple[tuple[str, str], ...] = option(
        (),
        "DRIVER=EXECUTOR",
        "Map a directory of this host to its path on the executors, like "
        "/data=/mnt/data. Repeatable",
        SPARK,
        name="--executor-path",
        read=executor_path,
        is_repeated=True,
    )
    # no option says the others
    map_capacity: Positive | None = None  # stop where Kafka's cleaner with such a map would
    session: "SparkSession | None" = None  # to use, and to leave open; else the run makes its own
    workers: "Workers | None" = None  # local ones to use, and to leave open
    in_process: bool = False  # tasks in this process, one after another, and no Spark: small logs
    retention: bool = (
        True  # delete what the topic's retention says, and what is below the log start
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """The options of `inspect` alone, as on the command line."""

    sample_bytes: Positive | None = None  # read at most about so much of each log; None: all
    top: Natural = option(
        10,
        "KEYS",
        "Number of keys to show with most versions, and with most bytes",
        LOGS,
        kind=Number(0, 20),
    )
    work_dir: str | None = same_option(RunOptions, "work_dir")
    engine: EngineChoice = same_option(RunOptions, "engine")
    spark_from: Natural | None = same_option(RunOptions, "spark_from")
    master: str | None = same_option(RunOptions, "master")
    executor_paths: tuple[tuple[str, str], ...] = same_option(RunOptions, "executor_paths")
    session: "SparkSession | None" = None  # to use, and to leave open; else it makes its own
    workers: "Workers | None" = None  # local ones to use, and to leave open
    in_process: bool = False  # tasks in this process, one after another, and no Spark: small logs


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What runs the tasks of `plan` with a sample, and of `verify_against`.

    Without any of these, they run in this process where there is little to read.
    """

    work_dir: str | None = same_option(RunOptions, "work_dir")
    engine: EngineChoice = same_option(RunOptions, "engine")
    spark_from: Natural | None = same_option(RunOptions, "spark_from")
    master: str | None = same_option(RunOptions, "master")
    executor_paths: tuple[tuple[str, str], ...] = same_option(RunOptions, "executor_paths")
    session: "SparkSession | None" = None  # to use, and to leave open; else it makes its own
    workers: "Workers | None" = None  # local ones to use, and to leave open
    in_process: bool = False  # tasks in this process, one after another, whatever there is to read


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Which records of a log, and which entries of an index, are shown."""

    from_offset: Natural = option(0, "OFFSET", "First record or entry to show", kind=Number(0))
    to_offset: Natural | None = option(None, "OFFSET", "Stop before this offset", kind=Number(0))
    limit: Natural | None = option(
        None, "RECORDS", "Show at most this many records or entries", kind=Number(1)
    )


class Isolation(StrEnum):
    """How far a log is read."""

    LOG_END = "log-end"  # all there is, records of aborted and open transactions too
    HIGH_WATERMARK = "high-watermark"  # what is replicated
    COMMITTED = "committed"  # of that what is decided, without aborted transactions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Which records of a log are read.

    first, end: the first that is wanted and the first that is not: an offset, a time (a datetime,
    ISO 8601, or @ and milliseconds), or `start`. A time stands for the first
    record that is not older, as when a consumer looks for it.
    """

    first: str | int | datetime = option(
        "start",
        "OFFSET|TIME|start",
        "An offset, a time (ISO 8601, or @ and epoch ms), or start",
        name="--from",
    )
    # None: as far as isolation lets one see
    end: str | int | datetime | None = option(
        None, "OFFSET|TIME", "Stop before this offset or time", name="--to"
    )
    isolation: str = option(
        Isolation.LOG_END,
        "",
        "All records, replicated ones or committed ones",
        kind=Isolation,
    )
    limit: Natural | None = option(
        None, "RECORDS", "Show at most this many records", kind=Number(1)
    )
    max_bytes: Natural | None = option(
        None, "BYTES", "Begin no batch beyond this many bytes of the log's files", kind=Number(1)
    )
    key: bytes | None = None  # only records with this key
    rules: Rules = Rules()


def _yes(_: object) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """What the commands that change a log share."""

    rules: Rules = Rules()
    only_replica: bool = option(
        False,
        "",
        "Required: say that no other replica exists, or that all others are rebuilt from this one",
        CHANGE,
    )
    dry_run: bool = option(False, "", "Show the result without changing files", CHANGE)
    # after an unclean shutdown, which is refused otherwise
    recover_first: bool = option(
        False,
        "",
        "Recover LOG_DIR first if the broker did not stop cleanly, or a command was cut short",
        CHANGE,
    )
    confirm_recovery: Callable[[str], bool] = _yes  # asked before that, with the log directory
    confirm: "Callable[[Outcome], bool]" = _yes  # asked before the log is changed
    allowed_file_systems: tuple[str, ...] = same_option(RunOptions, "allowed_file_systems")


@cache
def option_names() -> dict[str, str]:
    """Return what the command line calls each parameter that a plan or a run takes."""
    options = options_of(Rules) | options_of(RunOptions)
    operands = {"log_dirs": "LOG_DIR", "log_dir": "LOG_DIR"}
    operands |= {"partitions": "TOPIC-PARTITION", "topic_partition": "TOPIC-PARTITION"}
    return operands | {name: each.name for name, each in options.items()}


KAFKAS_DEFAULTS = Rules()
ONE_ROUND = RunOptions()
ANY_ENGINE = TaskOptions()
