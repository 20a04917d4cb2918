"""The commands that only read: configuration, one log's bounds, files, soundness."""

import os
from typing import Annotated

import typer

from compactor.command_line.arguments import log_dirs_and_partitions, log_dirs_and_topic
from compactor.command_line.begin import begin
from compactor.command_line.completion import directories_or_logs, directories_or_topics, logs
from compactor.command_line.options import (
    LOGS,
    SPARK,
    Against,
    AnyClock,
    AsOf,
    AsOfCleaning,
    AssumeFullyReplicated,
    Debug,
    DumpLines,
    ExecutorPaths,
    LogDirs,
    LogDirsAndPartitions,
    ManifestToo,
    Master,
    OutputFormat,
    Quiet,
    Report,
    RunReport,
    TopicConfigs,
    WorkDir,
)
from compactor.command_line.requests import (
    NOTHING_GIVEN,
    ConfigsArguments,
    ConfigurationArguments,
    DoctorArguments,
    DumpArguments,
    DumpFormat,
    ExplainArguments,
    Format,
    InspectArguments,
    ReportArguments,
    Request,
    RoundArguments,
    VerifyArguments,
)
from compactor.command_line.shared_options import with_configuration


@with_configuration
def explain(  # one parameter an option: this is how typer learns of them
    log_dir: LogDirs,
    topic_partition: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC-PARTITION",
            help="The log, for example orders-7",
            autocompletion=directories_or_logs,
        ),
    ],
    configuration: ConfigurationArguments = NOTHING_GIVEN,
    as_of: AsOf = None,
    any_clock: AnyClock = False,
    assume_fully_replicated: AssumeFullyReplicated = False,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Say why one log is compacted or not, what to do about it, and what sets its bounds.

    Reads metadata and the end of the log.

    [dim]compactor explain /data/kafka orders-7[/]
    """
    wanted = RoundArguments(
        log_dirs=tuple(log_dir),
        configuration=configuration,
        as_of=as_of,
        any_clock=any_clock,
        assume_fully_replicated=assume_fully_replicated,
        format=format_,
    )
    asked = ExplainArguments(wanted, topic_partition)
    return Request(
        command="explain",
        carry_out=begin("explain", asked),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
    )


@with_configuration
def configs(  # one parameter an option: this is how typer learns of them
    log_dir_or_topic: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG_DIR... [TOPIC]",
            autocompletion=directories_or_topics,
            help="Log directories. A last word that is no directory is a topic: only "
            "that one, with its defaults",
            show_default=False,
        ),
    ],
    configuration: ConfigurationArguments = NOTHING_GIVEN,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Show the effective configuration of every topic here, and where each value comes from.

    [dim]compactor configs /data/kafka orders[/]
    """
    log_dirs, topic = log_dirs_and_topic(log_dir_or_topic)
    wanted = ConfigsArguments(log_dirs, topic, configuration, format_)
    return Request(
        command="configs",
        carry_out=begin("configs", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
    )


def doctor(
    log_dir: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG_DIR", help="Log directories to check as well", show_default=False
        ),
    ] = None,
    start_spark: Annotated[
        bool,
        typer.Option(
            "--start-spark",
            rich_help_panel=SPARK,
            help="Also start Spark and run one small job, which takes a few seconds",
        ),
    ] = False,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    quiet: Quiet = False,
    debug: Debug = False,
) -> Request:
    """Say whether this machine, and log directories on it, are fit for a run, and what to do.

    Java, Spark, memory, room, locks, permissions, clock. Reads only.

    [dim]compactor doctor /data/kafka[/]
    """
    wanted = DoctorArguments(tuple(log_dir or ()), start_spark, format_)
    return Request(
        command="doctor",
        carry_out=begin("doctor", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
        quiet=quiet,
    )


def dump(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A file of a log directory, a partition, or a log directory"
        ),
    ],
    topic_partition: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC-PARTITION",
            autocompletion=logs,
            help="Partition of the log directory, for example orders-7",
            show_default=False,
        ),
    ] = None,
    from_offset: Annotated[
        int, typer.Option(metavar="OFFSET", min=0, help="First record or entry to show")
    ] = 0,
    to_offset: Annotated[
        int | None,
        typer.Option(metavar="OFFSET", min=0, help="Stop before this offset"),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="RECORDS", min=1, help="Show at most this many records or entries"),
    ] = None,
    format_: DumpLines = DumpFormat.TEXT,
    debug: Debug = False,
) -> Request:
    """Show the batches and records of a file or a partition, or the entries of an index.

    Records of __consumer_offsets, __transaction_state and __cluster_metadata, also in *.checkpoint
    files, are shown as what they say.

    [dim]compactor dump /data/kafka orders-7 --limit 10[/]

    [dim]compactor dump /data/kafka/orders-7/00000000000000000000.log --format json[/]
    """
    wanted = DumpArguments(
        path=path if topic_partition is None else os.path.join(path, topic_partition),
        from_offset=from_offset,
        to_offset=to_offset,
        limit=limit,
        format=format_,
    )
    return Request(
        command="dump",
        carry_out=begin("dump", wanted),
        format=Format.TABLE,
        reports=(),
        debug=debug,
    )


def verify(
    log_dir_or_partition: LogDirsAndPartitions,
    against: Against = None,
    as_of: AsOfCleaning = None,
    run_report: RunReport = None,
    topic_configs: TopicConfigs = None,
    manifest: ManifestToo = False,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    quiet: Quiet = False,
    debug: Debug = False,
) -> Request:
    """Check every checksum, offset, index and snapshot, or compare with a copy from before.

    With --against, every record is compared: each log is whole, or what was removed is shown by the
    log start, delete horizons, reports or settings, or it is unexplained (exit code 4). Reads only.

    [dim]compactor verify /data/kafka-1 /data/kafka-2[/]

    [dim]compactor verify /data/kafka orders-7[/]

    [dim]compactor verify /data/kafka --against /backup/kafka-before --run-report last.json[/]
    """
    log_dirs, partitions = log_dirs_and_partitions(log_dir_or_partition)
    wanted = VerifyArguments(
        log_dirs=log_dirs,
        partitions=partitions,
        against=against,
        as_of=as_of,
        run_reports=tuple(run_report or ()),
        topic_configs=topic_configs,
        format=format_,
        manifest=manifest,
    )
    return Request(
        command="verify",
        carry_out=begin("verify", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
        quiet=quiet,
    )


def report(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Reports as JSON: from --report, or the last line of standard output",
            show_default=False,
        ),
    ],
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Summarize reports: how each run ended, the sum of all, and the worst exit code.

    [dim]compactor report reports/*.json --report all.json[/]
    """
    wanted = ReportArguments(tuple(files), format_)
    return Request(
        command="report",
        carry_out=begin("report", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
    )


@with_configuration
def inspect(  # one parameter an option: this is how typer learns of them
    log_dir_or_partition: LogDirsAndPartitions,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            rich_help_panel=LOGS,
            help="Read at most 256 MiB of each log, spread evenly. Counts are of what was read",
        ),
    ] = False,
    top: Annotated[
        int,
        typer.Option(
            metavar="KEYS",
            min=0,
            max=20,
            rich_help_panel=LOGS,
            help="Number of keys to show with most versions, and with most bytes",
        ),
    ] = 10,
    configuration: ConfigurationArguments = NOTHING_GIVEN,
    as_of: AsOf = None,
    work_dir: WorkDir = None,
    master: Master = None,
    executor_path: ExecutorPaths = None,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Show what stands in logs: formats, codecs, sizes, keys, tombstones, open transactions.

    Of keys also their versions, of tombstones why they are still there. Reads every record, on
    Spark; changes nothing.

    [dim]compactor inspect /data/kafka orders-7[/]
    """
    log_dirs, partitions = log_dirs_and_partitions(log_dir_or_partition)
    wanted = InspectArguments(
        log_dirs=log_dirs,
        partitions=partitions,
        configuration=configuration,
        sample=sample,
        top=top,
        as_of=as_of,
        work_dir=work_dir,
        master=master,
        executor_paths=tuple(executor_path or ()),
        format=format_,
    )
    return Request(
        command="inspect",
        carry_out=begin("inspect", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
    )
