"""The commands of `compactor log` that only read."""

from importlib import import_module
from typing import Annotated

import typer

from compactor.command_line.log_options import LogDir, TopicPartition
from compactor.command_line.log_requests import LogArguments, OffsetsArguments
from compactor.command_line.options import Config, Debug, OutputFormat, Setting, TopicConfigs
from compactor.command_line.requests import Format, Request


def offsets(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="also the first record that is not older than TIME: epoch milliseconds or "
            "ISO 8601 (UTC unless it has a zone); may be repeated",
        ),
    ] = None,
    topic_configs: TopicConfigs = None,
    config: Config = None,
    set_: Setting = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Show where a log begins and ends, how far it is replicated and its transactions are decided,
    its leader epochs, and the transactions that are open.

    It is what a broker that starts would find. Nothing is changed and no lock taken; beside a
    running broker it is the state of a moment.

    [dim]compactor log offsets /data/kafka orders-0 --at 2026-11-20T12:00:00Z[/]
    """
    log = LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ()))
    wanted = OffsetsArguments(log, tuple(at or ()), format_)
    module = "compactor.command_line.log_offsets_command"
    return Request(
        "log offsets", lambda: import_module(module).result_of(wanted), format_, None, debug
    )
