"""The options of the commands, as typer takes them: names, help, panel of the help."""

from collections.abc import Callable
from typing import Annotated

import typer

from compactor.command_line.completion import directories_or_logs
from compactor.command_line.requests import DumpFormat, Format, OnCorrupt

LOGS, CONFIGURATION, OUTPUT, SPARK = "Logs", "Configuration", "Output", "Spark"

LogDirs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG_DIR",
        help="log directories of a broker (log.dirs), or of several brokers",
        show_default=False,
        autocompletion=directories_or_logs,
    ),
]
LogDirsAndPartitions = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG_DIR... [TOPIC-PARTITION]...",
        help="log directories of a broker, or of several; a word that is a partition in one before "
        "it, like orders-7, means: only these partitions",
        show_default=False,
        autocompletion=directories_or_logs,
    ),
]
TopicConfigs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="settings of topics: what kafka-configs --describe --all prints, or JSON: "
        "{topic: {name: value}}, with its names",
    ),
]
TrustTopicConfigs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC",
        rich_help_panel=CONFIGURATION,
        help="--topic-configs decides this topic's cleanup.policy, even if the metadata log "
        "disagrees; may be repeated",
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="defaults, and settings of topics by pattern, as TOML",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        rich_help_panel=CONFIGURATION,
        help="a setting for every topic; takes precedence over all files; may be repeated. "
        "plan and run take cleanup.policy=compact only with --include; it changes no topic that "
        "has one in --topic-configs",
    ),
]
Metadata = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=CONFIGURATION,
        help="the cluster's metadata log (__cluster_metadata-0), or a directory that it stands in; "
        "by default that of the log directories, if one has it",
    ),
]
NoMetadata = Annotated[
    bool,
    typer.Option(
        "--no-metadata",
        rich_help_panel=CONFIGURATION,
        help="take no notice of a metadata log: what is not said by the other options is unknown",
    ),
]
ServerProperties = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="the broker's server.properties, for its defaults of topics",
    ),
]
AllLogDirsGiven = Annotated[
    bool,
    typer.Option(
        "--all-log-dirs-given",
        rich_help_panel=LOGS,
        help="run even if the metadata log knows of more log directories of this broker",
    ),
]
Include = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", rich_help_panel=LOGS, help="only topics whose whole name matches"
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", rich_help_panel=LOGS, help="leave out topics whose whole name matches"
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="the time to take as now, for every horizon and lag: epoch milliseconds or ISO 8601 "
        "(UTC unless it has a zone); by default the clock of this machine",
    ),
]
AnyClock = Annotated[
    bool,
    typer.Option(
        "--any-clock",
        rich_help_panel=LOGS,
        help="accept any clock: an --as-of in 1970 or ahead of this machine's clock, and logs "
        "written more than five minutes after it",
    ),
]
AssumeFullyReplicated = Annotated[
    bool,
    typer.Option(
        "--assume-fully-replicated",
        rich_help_panel=LOGS,
        help="take the end of each log as its high watermark; a run needs it where no file of the "
        "log directory says how far its logs are replicated",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        rich_help_panel=LOGS,
        help="do everything except writing; the counts are those of a real run",
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
        help="also work on file systems of this type, nfs4 for example, where a lock may not "
        "exclude a broker on another host; may be repeated",
    ),
]
RecoverFirst = Annotated[
    bool,
    typer.Option(
        "--recover-first",
        rich_help_panel=LOGS,
        help="after an unclean shutdown of the broker, do what compactor recover does, then go on; "
        "without this option such a directory is refused, even after compactor recover",
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
        help="wait so long for another run, or a broker, to leave the log directories; without "
        "this option the run is refused at once",
    ),
]
Retry = Annotated[
    bool,
    typer.Option(
        "--retry",
        rich_help_panel=LOGS,
        help="try logs again that earlier runs have set aside, even if they have not changed",
    ),
]
DropNullKeys = Annotated[
    bool,
    typer.Option(
        "--drop-null-keys",
        rich_help_panel=LOGS,
        help="also clean logs where more than half of the records to be removed have no key; "
        "without this option they are set aside, since their topics may not be compacted ones",
    ),
]
CorruptPolicy = Annotated[
    OnCorrupt,
    typer.Option(
        "--on-corrupt",
        rich_help_panel=LOGS,
        help="what to do with a log whose data is damaged: set it aside and go on with the others, "
        "or fail before any log is swapped in",
    ),
]
WorkDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=SPARK,
        help="directory for the run's own files, made if it is not there; on a cluster, one that "
        "all executors share",
    ),
]
KeepOriginals = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=LOGS,
        help="keep replaced and deleted files in DIR/RUN_ID, for compactor undo; as hard links if "
        "DIR is on the same file system",
    ),
]
KeepFor = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="before the run, discard what runs that began longer ago than this kept in that DIR: "
        "7d or 12h, for example; by default nothing is discarded",
    ),
]
OutputDirs = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="DIR",
        rich_help_panel=LOGS,
        help="leave LOG_DIR as it is: copy all that a broker needs into DIR, and compact there; "
        "DIR is new or empty. Once for each LOG_DIR, in their order",
    ),
]
CompactedOnly = Annotated[
    bool,
    typer.Option(
        "--compacted-only",
        rich_help_panel=LOGS,
        help="with --output: copy the logs of compacted topics alone, and the metadata log",
    ),
]
Link = Annotated[
    bool,
    typer.Option(
        "--link",
        rich_help_panel=LOGS,
        help="with --output: hard links to closed segments in the place of copies; no broker may "
        "start there, since it would change the original with them",
    ),
]
ManifestToo = Annotated[
    bool,
    typer.Option(
        "--manifest",
        help="also check every file against compactor-copy.json, which run --output has left; a "
        "broker that has started there since has changed some",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        rich_help_panel=SPARK,
        help="Spark master; by default the one of spark-submit, or all cores of this host",
    ),
]
ExecutorPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--executor-path",
        metavar="HERE=THERE",
        rich_help_panel=SPARK,
        help="what a directory of this host is called on executors: /data=/mnt/data; may be "
        "repeated, also for one directory, where executors differ: each takes the name that leads "
        "to this run's files",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="BEFORE",
        rich_help_panel=LOGS,
        help="a copy of LOG_DIR from before a compaction (cp -al will do): show that readers "
        "find the latest record of every key, and that every record that is gone had a reason",
    ),
]
AsOfCleaning = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="with --against: the clock of the cleaning, to check delete horizons: epoch "
        "milliseconds or ISO 8601 (UTC unless it has a zone); by default the clock of this "
        "machine, by which they can only be compared with one another",
    ),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        rich_help_panel=OUTPUT,
        help="end with exit code 5 if this holds, and say of which logs: 'dirty_ratio > 0.8 and "
        "dirty_bytes > 1e9', for example; if repeated, any of them",
    ),
]
RunReport = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=LOGS,
        help="with --against: the report (--report) of a run, undo or compactor log command in "
        "between, which shows what it removed and set; may be repeated",
    ),
]
Report = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="also write the whole report to FILE: .json, .html (a page), .csv or .parquet (the "
        "rows), once for each; {run_id} and {date}, of UTC, may stand in its name",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="also write metrics to FILE (.prom), for the textfile collector of Prometheus' node "
        "exporter; however the command ends",
    ),
]
OutputFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        rich_help_panel=OUTPUT,
        help="json: one JSON object on standard output, everything else on standard error; table: "
        "a summary as JSON is the last line, unless standard output is a terminal",
    ),
]
DumpLines = Annotated[DumpFormat, typer.Option("--format", help="text, or one JSON object a line")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        rich_help_panel=OUTPUT,
        help="say nothing if all went well and there is no warning, for cron",
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", rich_help_panel=OUTPUT, help="show tracebacks and Spark's own log"),
]
