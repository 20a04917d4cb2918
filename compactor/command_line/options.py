"""The options that commands share, as typer is told of them: names, help, panel of the help."""

from typing import Annotated

import typer

from compactor.command_line.requests import DumpFormat, Format, OnCorrupt

LOGS, CONFIGURATION, OUTPUT, SPARK = "Logs", "Configuration", "Output", "Spark"

LogDirs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG_DIR", help="log directories of one broker (log.dirs)", show_default=False
    ),
]
TopicConfigs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="JSON: {topic: {topic configuration name: value}}, as kafka-configs names them",
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CONFIGURATION,
        help="defaults and patterns of topics, as TOML",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        rich_help_panel=CONFIGURATION,
        help="a topic configuration for every topic, over all files; may be repeated. "
        "cleanup.policy: with --include only, and not of topics that --topic-configs gives one",
    ),
]
Include = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", rich_help_panel=LOGS, help="only topics that the expression matches whole"
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(metavar="REGEX", rich_help_panel=LOGS, help="none of the topics that it matches"),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="clock of every horizon and lag: epoch milliseconds or ISO 8601 (UTC unless it has a "
        "zone); by default now",
    ),
]
AnyClock = Annotated[
    bool,
    typer.Option(
        "--any-clock",
        rich_help_panel=LOGS,
        help="take the clock of the round as it is: --as-of in 1970 or ahead of this machine's "
        "clock, or a log written more than five minutes after it",
    ),
]
AssumeFullyReplicated = Annotated[
    bool,
    typer.Option(
        "--assume-fully-replicated",
        rich_help_panel=LOGS,
        help="take the end of each log for its high watermark",
    ),
]
MapCapacity = Annotated[
    int | None,
    typer.Option(
        metavar="KEYS",
        min=1,
        max=2**31 - 1,  # Kafka counts the keys with 32 bits
        rich_help_panel=LOGS,
        help="stop where Kafka's cleaner would, whose offset map takes so many keys; by default a "
        "round has no such limit",
    ),
]
AllowFileSystem = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-file-system",
        metavar="TYPE",
        rich_help_panel=LOGS,
        help="work in place on file systems of that type too, like nfs4, where a lock may keep no "
        "other host's broker out; may be repeated",
    ),
]
RecoverFirst = Annotated[
    bool,
    typer.Option(
        "--recover-first",
        rich_help_panel=LOGS,
        help="after an unclean shutdown of the broker do what compactor recover does, then go on; "
        "without it such a directory is refused, after compactor recover, too",
    ),
]
Retry = Annotated[
    bool,
    typer.Option(
        "--retry",
        rich_help_panel=LOGS,
        help="take logs up again that earlier runs have set aside, though they have not changed",
    ),
]
DropNullKeys = Annotated[
    bool,
    typer.Option(
        "--drop-null-keys",
        rich_help_panel=LOGS,
        help="clean a log, too, if more than half of the records that go have no key; without it "
        "such a log is set aside, since it may be no compacted one",
    ),
]
CorruptPolicy = Annotated[
    OnCorrupt,
    typer.Option(
        "--on-corrupt",
        rich_help_panel=LOGS,
        help="what to do about a log whose data is wrong: set it aside and go on with the others, "
        "or fail before any log is swapped in",
    ),
]
WorkDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=SPARK,
        help="for the run's own files; on a cluster a path that all executors share",
    ),
]
KeepOriginals = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=LOGS,
        help="keep what is replaced or deleted in DIR/RUN_ID, for compactor undo; as hard links "
        "where DIR is on the same file system",
    ),
]
KeepFor = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=LOGS,
        help="before, discard from that DIR what runs have kept that began longer ago, like 7d or "
        "12h; by default nothing",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        rich_help_panel=SPARK,
        help="Spark master; by default what spark-submit set, or all cores of this host",
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=OUTPUT, help="write the whole report there too (.json)"
    ),
]
OutputFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        rich_help_panel=OUTPUT,
        help="json: one JSON object on standard output, everything else on standard error",
    ),
]
DumpLines = Annotated[
    DumpFormat, typer.Option("--format", help="text, or a JSON object for each line")
]
Debug = Annotated[
    bool, typer.Option("--debug", rich_help_panel=OUTPUT, help="tracebacks and Spark's own log")
]
