"""What may be said to `inspect`, as typer learns of it."""

from typing import Annotated

import typer

from compactor.command_line.arguments import log_dirs_and_partitions
from compactor.command_line.begin import begin
from compactor.command_line.options import (
    LOGS,
    AsOf,
    Debug,
    ExecutorPaths,
    LogDirsAndPartitions,
    Master,
    OutputFormat,
    Report,
    WorkDir,
)
from compactor.command_line.requests import (
    NOTHING_GIVEN,
    ConfigurationArguments,
    Format,
    InspectArguments,
    Request,
)
from compactor.command_line.shared_options import with_configuration


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
