"""Options that several commands share: each takes them as one value.

typer learns of options by the parameters of a function. `with_configuration` and
`with_shared_options` give a command those of `_configuration` and of `_shared`, with its own where
they belong, so that nobody has to write them down again.
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
    Kafka,
    Metadata,
    NoMetadata,
    OutputFormat,
    Report,
    ServerProperties,
    Setting,
    TopicConfigs,
    TrustTopicConfigs,
)
from compactor.command_line.requests import ConfigurationArguments, Format, Request

Command = Callable[..., Request]
_OF_DIFFERENCES = "only_replica"  # asked of commands that may make replicas differ


_CONFIGURATION = "configuration"


def _configuration(  # one parameter an option: this is how typer learns of them
    topic_configs: TopicConfigs = None,
    trust_topic_configs: TrustTopicConfigs = None,
    config: Config = None,
    set_: Setting = None,
    metadata: Metadata = None,
    no_metadata: NoMetadata = False,
    server_properties: ServerProperties = None,
    kafka: Kafka = None,
) -> ConfigurationArguments:
    return ConfigurationArguments(
        topic_configs=topic_configs,
        config=config,
        settings=tuple(set_ or ()),
        metadata=metadata,
        no_metadata=no_metadata,
        server_properties=server_properties,
        trust_topic_configs=tuple(trust_topic_configs or ()),
        kafka=kafka,
    )


def with_configuration(command: Command) -> Command:
    """Give a command the options that say where settings come from, instead of `configuration`."""
    options = inspect.signature(_configuration).parameters
    own = list(inspect.signature(command).parameters.values())
    at = [parameter.name for parameter in own].index(_CONFIGURATION)

    def run(**given: Any) -> Request:
        found = _configuration(**{name: given.pop(name) for name in options})
        return command(**given, **{_CONFIGURATION: found})

    return _with_parameters(run, command, [*own[:at], *options.values(), *own[at + 1 :]])


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
    metadata: Metadata = None,
    allow_file_system: AllowFileSystem = None,
    report: Report = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> SharedArguments:
    return SharedArguments(
        log=LogArguments(
            log_dir=log_dir,
            topic_partition=topic_partition,
            topic_configs=topic_configs,
            config=config,
            settings=tuple(set_ or ()),
            metadata=metadata,
        ),
        only_replica=only_replica,
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        debug=debug,
        reports=tuple(report or ()),
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

        return _with_parameters(run, command, [log_dir, topic_partition, *own, *options])

    return command_of


def _with_parameters(run: Command, model: Command, parameters: list[inspect.Parameter]) -> Command:
    """A function with the name and the help of another, as typer sees it."""
    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    run.__name__, run.__doc__ = model.__name__, model.__doc__
    run.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return run
