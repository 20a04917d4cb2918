"""The commands of `compactor log` that change one log."""

from importlib import import_module

from compactor.command_line.log_options import (
    LogDir,
    LogDryRun,
    RecoverLogFirst,
    TopicPartition,
    Yes,
)
from compactor.command_line.log_requests import ChangeArguments, LogArguments
from compactor.command_line.options import (
    AllowFileSystem,
    Config,
    Debug,
    OutputFormat,
    Setting,
    TopicConfigs,
)
from compactor.command_line.requests import Format, Request


def roll(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    yes: Yes = False,
    dry_run: LogDryRun = False,
    recover_first: RecoverLogFirst = False,
    topic_configs: TopicConfigs = None,
    config: Config = None,
    set_: Setting = None,
    allow_file_system: AllowFileSystem = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Begin a new segment, so that all records there are lie in closed ones, which can be cleaned.

    No record is changed, so other replicas do not mind. A log with an empty active segment is
    left as it is.

    [dim]compactor log roll /data/kafka orders-0[/]
    """
    wanted = ChangeArguments(
        log=LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ())),
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
    )
    return _request("roll", wanted, debug)


def _request(name: str, wanted: ChangeArguments, debug: bool) -> Request:
    module = "compactor.command_line.log_change_command"
    return Request(
        f"log {name}",
        lambda: import_module(module).result_of(name, wanted),
        wanted.format,
        None,
        debug,
    )
