"""The options of the commands, as typer takes them: names, help, panel of the help."""

from collections.abc import Callable
from typing import Annotated

import typer

from compactor.command_line.completion import directories_or_logs
from compactor.command_line.requests import DumpFormat, Format, OnCorrupt
from storage.kafka_versions import BY_NAME

LOGS, CONFIGURATION, OUTPUT, SPARK = "Logs", "Configuration", "Output", "Spark"

LogDirs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG_DIR",
        help="Log directories of a broker (log.dirs), or of several brokers",
        show_default=False,
        autocompletion=directories_or_logs,
    ),
]
LogDirsAndPartitions = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG_DIR... [TOPIC-PARTITION]...",
        help="Log directories. A partition of one before it, like orders-7, limits "
        "the command to it",
        show_default=False,
        autocompletion=directories_or_logs,
    ),
]
TopicConfigs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="Settings of topics: the output of kafka-configs --describe --all, or "
        "JSON {topic: {name: value}}",
    ),
]
TrustTopicConfigs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC",
        rich_help_panel=CONFIGURATION,
        help="Let --topic-configs decide this topic's cleanup.policy against the "
        "metadata log. Repeatable",
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="Defaults, and settings of topics by pattern, as TOML",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        rich_help_panel=CONFIGURATION,
        help="Setting for every topic, over all files. Repeatable. In plan and run, "
        "cleanup.policy=compact needs --include",
    ),
]
Metadata = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=CONFIGURATION,
        help="Cluster metadata log (__cluster_metadata-0), or its directory. "
        "Default: the one of the log directories",
    ),
]
NoMetadata = Annotated[
    bool,
    typer.Option(
        "--no-metadata",
        rich_help_panel=CONFIGURATION,
        help="Ignore the cluster metadata log. Topics without other settings have no known policy",
    ),
]
ServerProperties = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="The broker's server.properties, for its defaults of topics",
    ),
]
AllLogDirsGiven = Annotated[
    bool,
    typer.Option(
        "--all-log-dirs-given",
        rich_help_panel=LOGS,
        help="Run even if the metadata log knows more log directories of this broker",
    ),
]
Include = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", rich_help_panel=LOGS, help="Only topics whose whole name matches"
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", rich_help_panel=LOGS, help="Leave out topics whose whole name matches"
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="Time that counts as now: epoch milliseconds or ISO 8601 (UTC without a"
        " zone). Default: the clock",
    ),
]
AnyClock = Annotated[
    bool,
    typer.Option(
        "--any-clock",
        rich_help_panel=LOGS,
        help="Skip the clock checks: accept any --as-of, and logs that were written "
        "after the clock",
    ),
]
AssumeFullyReplicated = Annotated[
    bool,
    typer.Option(
        "--assume-fully-replicated",
        rich_help_panel=LOGS,
        help="Treat every record as replicated. Required where no checkpoint says how far logs are",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        rich_help_panel=LOGS,
        help="Do everything except writing. The counts are those of a real run",
    ),
]


def _at_most(greatest: int) -> Callable[[int | None], int | None]:
    """A limit that the help does not show: beside long ones it has no room for names of options."""

    def check(value: int | None) -> int | None:
        if value is not None and value > greatest:
            raise typer.BadParameter(f"expected {greatest} or less")
        return value

    return check


AllowFileSystem = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-file-system",
        metavar="TYPE",
        rich_help_panel=LOGS,
        help="Also work on this type of file system, like nfs4, whose locks may not "
        "exclude a broker. Repeatable",
    ),
]
RecoverFirst = Annotated[
    bool,
    typer.Option(
        "--recover-first",
        rich_help_panel=LOGS,
        help="After an unclean shutdown, recover first. Each run needs it until a "
        "broker has stopped cleanly",
    ),
]
Wait = Annotated[
    int,
    typer.Option(
        metavar="SECONDS",
        min=0,
        callback=_at_most(7 * 86400),
        rich_help_panel=LOGS,
        show_default=False,
        help="Wait this long for another run or a broker to leave the log "
        "directories. Default: do not wait",
    ),
]
Retry = Annotated[
    bool,
    typer.Option(
        "--retry",
        rich_help_panel=LOGS,
        help="Also try unchanged logs that earlier runs have set aside",
    ),
]
DropNullKeys = Annotated[
    bool,
    typer.Option(
        "--drop-null-keys",
        rich_help_panel=LOGS,
        help="Also clean logs where most records to remove have no key. Default: set them aside",
    ),
]
CorruptPolicy = Annotated[
    OnCorrupt,
    typer.Option(
        "--on-corrupt",
        rich_help_panel=LOGS,
        help="A damaged log: set it aside, or fail before any log is swapped in",
    ),
]
WorkDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=SPARK,
        help="Directory for the run's own files, made if missing. On a cluster, all "
        "executors share it",
    ),
]
KeepOriginals = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=LOGS,
        help="Keep replaced and deleted files in DIR/RUN_ID, for compactor undo",
    ),
]
KeepFor = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="First discard what runs kept in that DIR that began longer ago than "
        "this, like 7d or 12h",
    ),
]
OutputDirs = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="DIR",
        rich_help_panel=LOGS,
        help="Compact a copy in DIR, which is new or empty, instead of LOG_DIR. Once"
        " for each LOG_DIR, in order",
    ),
]
CompactedOnly = Annotated[
    bool,
    typer.Option(
        "--compacted-only",
        rich_help_panel=LOGS,
        help="With --output: copy only the logs of compacted topics, and the metadata log",
    ),
]
Link = Annotated[
    bool,
    typer.Option(
        "--link",
        rich_help_panel=LOGS,
        help="With --output: hard-link closed segments instead of copying them. No "
        "broker may start there",
    ),
]
ManifestToo = Annotated[
    bool,
    typer.Option(
        "--manifest",
        help="Also check every file of a copy against the compactor-copy.json that "
        "run --output has left",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        rich_help_panel=SPARK,
        help="Spark master. Default: that of spark-submit, or all cores of this host",
    ),
]
ExecutorPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--executor-path",
        metavar="DRIVER=EXECUTOR",
        rich_help_panel=SPARK,
        help="Map a directory of this host to its path on the executors, like "
        "/data=/mnt/data. Repeatable",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="BEFORE",
        rich_help_panel=LOGS,
        help="Copy of LOG_DIR from before a compaction (cp -al): prove that no live "
        "record was lost",
    ),
]
AsOfCleaning = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="With --against: clock of the cleaning, epoch milliseconds or ISO 8601,"
        " to check delete horizons",
    ),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        rich_help_panel=OUTPUT,
        help="End with exit code 5 if this holds, like 'dirty_ratio > 0.8 and "
        "dirty_bytes > 1e9'. Repeatable: any of them",
    ),
]
RunReport = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=LOGS,
        help="With --against: report of a run, undo or log command that came in "
        "between. Repeatable",
    ),
]
Report = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write the report to FILE.json, .html, .csv or .parquet, once each. "
        "{run_id} and {date} are filled in",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write metrics to FILE.prom, for Prometheus' node exporter, however the command ends",
    ),
]
OutputFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        rich_help_panel=OUTPUT,
        help="A table (if piped, with a JSON summary as last line), or one JSON object",
    ),
]
DumpLines = Annotated[DumpFormat, typer.Option("--format", help="Text, or one JSON object a line")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        rich_help_panel=OUTPUT,
        help="Print nothing if all went well and there is no warning, for cron",
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", rich_help_panel=OUTPUT, help="Show tracebacks and Spark's own log"),
]


IoLimit = Annotated[
    str | None,
    typer.Option(
        "--io-limit",
        metavar="RATE",
        rich_help_panel=SPARK,
        help="Read and write at most this much a second on each host, all processes "
        "together, like 200MB/s",
    ),
]
Nice = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        max=19,
        rich_help_panel=SPARK,
        help="CPU and I/O priority (nice value) of the run, with Spark and its tasks",
    ),
]


Kafka = Annotated[
    str | None,
    typer.Option(
        "--kafka",
        metavar="|".join(BY_NAME),
        rich_help_panel=CONFIGURATION,
        help="Give the answer of this Kafka. Default: the broker's version by the "
        "metadata log, else the newest",
    ),
]
ExactBytes = Annotated[
    bool,
    typer.Option(
        "--exact-bytes",
        rich_help_panel=LOGS,
        help="Refuse to clean if a codec's build is not that Kafka's. Default: clean, with a note",
    ),
]
