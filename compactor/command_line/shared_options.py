"""The options that the commands share which change one log: each takes them as one value.

typer learns of options by the parameters of a function. `with_shared_options` gives a command those
of `_shared`, with its own where they belong, so that nobody has to write them down again.
"""

import inspect
from collections.abc import Callable
from typing import Any

from compactor.command_line.log_options import (
    LogDir,
    LogDryRun,
    OnlyReplica,
    RecoverLogFirst,
    TopicPartition,
    Yes,
)
from compactor.command_line.log_requests import LogArguments, SharedArguments
from compactor.command_line.options import (
    AllowFileSystem,
    Config,
    Debug,
    OutputFormat,
    Setting,
    TopicConfigs,
)
from compactor.command_line.requests import Format, Request

Command = Callable[..., Request]
_OF_DIFFERENCES = "only_replica"  # asked of commands that may make replicas differ


def _shared(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    only_replica: OnlyReplica = False,
    yes: Yes = False,
    dry_run: LogDryRun = False,
    recover_first: RecoverLogFirst = False,
    topic_configs: TopicConfigs = None,
    config: Config = None,
    set_: Setting = None,
    allow_file_system: AllowFileSystem = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> SharedArguments:
    return SharedArguments(
        log=LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ())),
        only_replica=only_replica,
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        debug=debug,
    )


def with_shared_options(may_make_replicas_differ: bool) -> Callable[[Command], Command]:
    """Make a command of a function whose first parameter is the value of the shared options.

    Its own parameters stand behind the log's name.
    """

    def command_of(command: Command) -> Command:
        names = {
            name: parameter
            for name, parameter in inspect.signature(_shared).parameters.items()
            if may_make_replicas_differ or name != _OF_DIFFERENCES
        }
        log_dir, topic_partition, *options = names.values()
        _, *own = inspect.signature(command).parameters.values()

        def run(**given: Any) -> Request:
            shared = _shared(**{name: given.pop(name) for name in names})
            return command(shared, **given)

        by_name = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in (log_dir, topic_partition, *own, *options)
        ]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
        return run

    return command_of
