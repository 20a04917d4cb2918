"""The commands that put right what was cut short, or bring back what a run has replaced."""

from typing import Annotated

import typer

from compactor.command_line.begin import begin
from compactor.command_line.options import (
    LOGS,
    AllowFileSystem,
    Debug,
    LogDirs,
    OutputFormat,
    Quiet,
    Report,
)
from compactor.command_line.requests import (
    NOTHING_GIVEN,
    ConfigurationArguments,
    Format,
    Request,
    RoundArguments,
    UndoArguments,
)
from compactor.command_line.shared_options import with_configuration


@with_configuration
def recover(  # one parameter an option: this is how typer learns of them
    log_dir: LogDirs,
    configuration: ConfigurationArguments = NOTHING_GIVEN,
    as_kafka: Annotated[
        bool,
        typer.Option(
            "--as-kafka",
            rich_help_panel=LOGS,
            help="Do what a broker's start and stop does to each log, even if that "
            "removes sound data for good",
        ),
    ] = False,
    allow_file_system: AllowFileSystem = None,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    quiet: Quiet = False,
    debug: Debug = False,
) -> Request:
    """Finish or undo what a run, or a broker's cleaner, left half-done when it was cut short.

    After an unclean shutdown of the broker, check and rebuild what a starting broker would. Sound
    data is never cut off without --as-kafka. Each run still needs --recover-first until a broker
    has stopped cleanly.

    [dim]compactor recover /data/kafka[/]
    """
    wanted = RoundArguments(
        log_dirs=tuple(log_dir),
        configuration=configuration,
        allowed_file_systems=tuple(allow_file_system or ()),
        recover_first=True,
        as_kafka=as_kafka,
        format=format_,
    )
    return Request(
        command="recover",
        carry_out=begin("recover", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
        quiet=quiet,
    )


def undo(
    run_dir: Annotated[
        str,
        typer.Argument(
            metavar="RUN_DIR",
            help="Where a run keeps its originals: DIR/RUN_ID",
            show_default=False,
        ),
    ],
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove the originals instead of bringing them back")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show which logs would be brought back, and change nothing"),
    ] = False,
    allow_file_system: AllowFileSystem = None,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    quiet: Quiet = False,
    debug: Debug = False,
) -> Request:
    """Bring logs back as they were before a run with --keep-originals.

    Logs that were changed since are left as they are; records that a broker has appended stay.

    [dim]compactor undo /data/originals/3f9c2b1a[/]
    """
    wanted = UndoArguments(
        run_dir=run_dir,
        discard=discard,
        dry_run=dry_run,
        format=format_,
        allowed_file_systems=tuple(allow_file_system or ()),
    )
    return Request(
        command="undo",
        carry_out=begin("undo", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
        quiet=quiet,
    )
