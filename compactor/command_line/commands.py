"""What may be said to each command, as typer learns of it; the Request that is made of the words.

Nothing is done here. A request holds what carries it out; the module of the command, and all that
it needs, is loaded when it begins (`begin`): `--version`, `--help` and `plan` never load Spark
or a kernel.
"""

import os
from typing import Annotated

import typer

from compactor import api
from compactor.command_line import (
    log_change_commands,
    log_look_commands,
    look_commands,
    repair_commands,
)
from compactor.command_line.begin import begin
from compactor.command_line.completion import show_script
from compactor.command_line.given_once import Commands, GivenOnce
from compactor.command_line.options import (
    AllLogDirsGiven,
    AllowFileSystem,
    AnyClock,
    AsOf,
    AssumeFullyReplicated,
    CompactedOnly,
    CorruptPolicy,
    Debug,
    DropNullKeys,
    DryRun,
    ExactBytes,
    Exclude,
    ExecutorPaths,
    FailIf,
    Include,
    IoLimit,
    KeepFor,
    KeepOriginals,
    Link,
    LogDirs,
    Master,
    Metrics,
    Nice,
    OutputDirs,
    OutputFormat,
    Quiet,
    RecoverFirst,
    Report,
    Retry,
    Wait,
    WorkDir,
)
from compactor.command_line.plan_options import (
    LogDirsOrPlan,
    MaxBytes,
    MaxLogs,
    MaxMinutes,
    PlanOrder,
    PlanToRun,
    Sample,
    SampleBytes,
    SavePlan,
    ShowAll,
    Top,
)
from compactor.command_line.requests import (
    NOTHING_GIVEN,
    ConfigurationArguments,
    Format,
    OnCorrupt,
    Request,
    RoundArguments,
)
from compactor.command_line.shared_options import with_configuration
from compactor.host.output import print_line
from compactor.host.version import version

app = typer.Typer(
    name="compactor",
    cls=Commands,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="[bold]Examples[/]\n\n"
    "compactor plan /data/kafka\n\n"
    "compactor run /data/kafka --dry-run\n\n"
    "compactor run /disk1/kafka /disk2/kafka --include '__consumer_offsets' --report last.json\n\n"
    "compactor verify /data/kafka orders-7\n\n"
    "compactor verify /data/kafka --against /backup/kafka-before\n\n"
    "[bold]Exit codes[/]\n\n"
    "0 done, or nothing was eligible; 1 failed; 2 wrong usage or configuration; 3 refused; "
    "4 some logs failed or were set aside, or verify or doctor found something; "
    "5 a condition of --fail-if holds; "
    "130, 143, 129 interrupted by Ctrl-C, SIGTERM, SIGHUP",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print_line(f"compactor {version()}")
        raise typer.Exit()


def _show_entry_file(wanted: bool) -> None:
    if wanted:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        print_line(os.path.join(package, "__main__.py"))
        raise typer.Exit()


@app.callback()
def compactor(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version"),
    ] = False,
    entry_file: Annotated[
        bool,
        typer.Option(
            "--entry-file",
            is_eager=True,
            callback=_show_entry_file,
            help="Path of the file for spark-submit: spark-submit $(compactor --entry-file) run …",
        ),
    ] = False,
    completion: Annotated[
        str | None,
        typer.Option(
            "--completion",
            metavar="SHELL",
            is_eager=True,
            callback=show_script,
            help="Print the script that makes bash, zsh or fish complete commands, "
            "options and logs",
        ),
    ] = None,
) -> None:
    """Compact Kafka log directories without a broker, in parallel on Spark."""


@app.command(cls=GivenOnce)
@with_configuration
def plan(  # one parameter an option: this is how typer learns of them
    log_dir: LogDirs,
    configuration: ConfigurationArguments = NOTHING_GIVEN,
    include: Include = None,
    exclude: Exclude = None,
    as_of: AsOf = None,
    any_clock: AnyClock = False,
    all_log_dirs_given: AllLogDirsGiven = False,
    assume_fully_replicated: AssumeFullyReplicated = False,
    fail_if: FailIf = None,
    order: PlanOrder = api.Order.GAIN,
    max_logs: MaxLogs = None,
    max_bytes: MaxBytes = None,
    max_minutes: MaxMinutes = None,
    top: Top = 10,
    all_: ShowAll = False,
    sample: Sample = False,
    sample_bytes: SampleBytes = "268435456",
    save: SavePlan = None,
    report: Report = None,
    metrics: Metrics = None,
    format_: OutputFormat = Format.TABLE,
    quiet: Quiet = False,
    debug: Debug = False,
) -> Request:
    """Show how much is dirty, by topic, what a run would clean, and what blocks the rest.

    Reads metadata only.

    [dim]compactor plan /data/kafka[/]
    """
    wanted = RoundArguments(
        log_dirs=tuple(log_dir),
        configuration=configuration,
        include=include,
        exclude=exclude,
        as_of=as_of,
        any_clock=any_clock,
        all_log_dirs_given=all_log_dirs_given,
        assume_fully_replicated=assume_fully_replicated,
        fail_if=tuple(fail_if or ()),
        order=order,
        max_logs=max_logs,
        max_bytes=max_bytes,
        max_minutes=max_minutes,
        sample_bytes=sample_bytes if sample else None,
        saved_plan=save,
        top=None if all_ else top,
        format=format_,
    )
    return Request(
        command="plan",
        carry_out=begin("plan", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
        metrics=metrics,
        quiet=quiet,
    )


@app.command(cls=GivenOnce)
@with_configuration
def run(  # one parameter an option: this is how typer learns of them
    log_dir: LogDirsOrPlan = None,
    plan: PlanToRun = None,
    dry_run: DryRun = False,
    configuration: ConfigurationArguments = NOTHING_GIVEN,
    include: Include = None,
    exclude: Exclude = None,
    as_of: AsOf = None,
    any_clock: AnyClock = False,
    all_log_dirs_given: AllLogDirsGiven = False,
    assume_fully_replicated: AssumeFullyReplicated = False,
    order: PlanOrder = api.Order.GAIN,
    max_logs: MaxLogs = None,
    max_bytes: MaxBytes = None,
    max_minutes: MaxMinutes = None,
    recover_first: RecoverFirst = False,
    on_corrupt: CorruptPolicy = OnCorrupt.SET_ASIDE,
    wait: Wait = 0,
    retry: Retry = False,
    exact_bytes: ExactBytes = False,
    drop_null_keys: DropNullKeys = False,
    allow_file_system: AllowFileSystem = None,
    keep_originals: KeepOriginals = None,
    keep_for: KeepFor = None,
    output: OutputDirs = None,
    compacted_only: CompactedOnly = False,
    link: Link = False,
    work_dir: WorkDir = None,
    master: Master = None,
    io_limit: IoLimit = None,
    nice: Nice = None,
    executor_path: ExecutorPaths = None,
    fail_if: FailIf = None,
    report: Report = None,
    metrics: Metrics = None,
    format_: OutputFormat = Format.TABLE,
    quiet: Quiet = False,
    debug: Debug = False,
) -> Request:
    """Compact every eligible log in one round. Stop the broker of these directories first.

    A wait for executors, or for a stopped process of the run, ends after COMPACTOR_WAIT_SECONDS
    (an environment variable; 600).

    [dim]compactor run /data/kafka --dry-run[/]
    """
    if not log_dir and plan is None:
        raise typer.BadParameter("Missing argument 'LOG_DIR'.")
    wanted = RoundArguments(
        log_dirs=tuple(log_dir or ()),
        saved_plan=plan,
        order=order,
        max_logs=max_logs,
        max_bytes=max_bytes,
        max_minutes=max_minutes,
        dry_run=dry_run,
        configuration=configuration,
        include=include,
        exclude=exclude,
        as_of=as_of,
        any_clock=any_clock,
        all_log_dirs_given=all_log_dirs_given,
        assume_fully_replicated=assume_fully_replicated,
        work_dir=work_dir,
        master=master,
        io_limit=io_limit,
        nice=nice,
        executor_paths=tuple(executor_path or ()),
        recover_first=recover_first,
        on_corrupt=on_corrupt,
        wait_seconds=wait,
        retry=retry,
        exact_bytes=exact_bytes,
        drop_null_keys=drop_null_keys,
        allowed_file_systems=tuple(allow_file_system or ()),
        keep_originals=keep_originals,
        keep_for=keep_for,
        output=tuple(output or ()),
        compacted_only=compacted_only,
        link=link,
        fail_if=tuple(fail_if or ()),
        format=format_,
    )
    return Request(
        command="run",
        carry_out=begin("run", wanted),
        format=format_,
        reports=tuple(report or ()),
        debug=debug,
        metrics=metrics,
        quiet=quiet,
    )


app.command(cls=GivenOnce)(repair_commands.recover)
app.command(cls=GivenOnce)(repair_commands.undo)
app.command(cls=GivenOnce)(look_commands.explain)
app.command(cls=GivenOnce)(look_commands.configs)
app.command(cls=GivenOnce)(look_commands.inspect)
app.command(cls=GivenOnce)(look_commands.doctor)
app.command(cls=GivenOnce)(look_commands.dump)
app.command(cls=GivenOnce)(look_commands.verify)
app.command(cls=GivenOnce)(look_commands.report)


log_app = typer.Typer(
    name="log",
    cls=Commands,
    rich_markup_mode="rich",
    help="Work with one log as Kafka's storage engine does.",
    no_args_is_help=True,
)


@log_app.callback()
def log() -> None:
    """Work with one log as Kafka's storage engine does."""


log_app.command(cls=GivenOnce)(log_look_commands.offsets)
log_app.command(cls=GivenOnce)(log_look_commands.read)
log_app.command(cls=GivenOnce)(log_change_commands.roll)
log_app.command(cls=GivenOnce)(log_change_commands.delete_records)
log_app.command(cls=GivenOnce)(log_change_commands.truncate)
log_app.command(cls=GivenOnce)(log_change_commands.append)
log_app.command(cls=GivenOnce)(log_change_commands.abort)
log_app.command(cls=GivenOnce)(log_change_commands.move)
app.add_typer(log_app)
