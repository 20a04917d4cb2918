"""The commands of `compactor log` that only read."""

from importlib import import_module
from typing import Annotated

import typer

from compactor import api
from compactor.command_line.log_options import LogDir, TopicPartition
from compactor.command_line.log_requests import (
    LogArguments,
    OffsetsArguments,
    ReadArguments,
    ReadFormat,
)
from compactor.command_line.options import (
    Config,
    Debug,
    Metadata,
    OutputFormat,
    Setting,
    TopicConfigs,
)
from compactor.command_line.requests import Format, Request
from compactor.views.record_lines import Form


def offsets(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="Also the first record that is not older than TIME, epoch milliseconds "
            "or ISO 8601. Repeatable",
        ),
    ] = None,
    topic_configs: TopicConfigs = None,
    config: Config = None,
    set_: Setting = None,
    metadata: Metadata = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Show where a log begins and ends, what is replicated and decided, and its transactions.

    Leader epochs and open transactions are listed. It is what a broker that starts would find.
    Nothing is changed and no lock taken; beside a running broker it is the state of a moment.

    [dim]compactor log offsets /data/kafka orders-0 --at 2026-11-20T12:00:00Z[/]
    """
    log = LogArguments(
        log_dir=log_dir,
        topic_partition=topic_partition,
        topic_configs=topic_configs,
        config=config,
        settings=tuple(set_ or ()),
        metadata=metadata,
    )
    wanted = OffsetsArguments(log, tuple(at or ()), format_)
    module = "compactor.command_line.log_offsets_command"
    return Request(
        command="log offsets",
        carry_out=lambda: import_module(module).result_of(wanted),
        format=format_,
        reports=(),
        debug=debug,
    )


def read(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    first: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="OFFSET|TIME|start",
            help="An offset, a time (ISO 8601, or @ and epoch ms), or start",
        ),
    ] = "start",
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="OFFSET|TIME", help="Stop before this offset or time"),
    ] = None,
    isolation: Annotated[
        api.Isolation,
        typer.Option(help="All records, replicated ones or committed ones"),
    ] = api.Isolation.LOG_END,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Only records with this key, written as --keys says"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="RECORDS", min=1, help="Show at most this many records")
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", min=1, help="Begin no batch beyond this many bytes of the log's files"
        ),
    ] = None,
    keys: Annotated[
        Form, typer.Option(help="Form of keys; json: a JSON value of its own")
    ] = Form.TEXT,
    values: Annotated[Form, typer.Option(help="Form of values")] = Form.TEXT,
    format_: Annotated[
        ReadFormat,
        typer.Option(
            "--format",
            help="json: as log append takes it; values: bare bytes",
        ),
    ] = ReadFormat.TABLE,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="File for --format parquet")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on with records that are appended, until interrupted"),
    ] = False,
    topic_configs: TopicConfigs = None,
    config: Config = None,
    set_: Setting = None,
    metadata: Metadata = None,
    debug: Debug = False,
) -> Request:
    """Show the records of a log as they stand in its files.

    Nothing is changed and no lock taken. It works beside a running broker, too, and with --follow
    shows what that appends. Where the log is damaged all records before are shown, and the exit
    code is 1. Bytes that are not UTF-8 stand as escapes, in JSON as {"hex": ...}.

    [dim]compactor log read /data/kafka orders-0 --from 2026-11-20T12:00:00Z --limit 10[/]

    [dim]compactor log read /data/kafka orders-0 --format parquet --output orders.parquet[/]
    """
    wanted = ReadArguments(
        log=LogArguments(
            log_dir=log_dir,
            topic_partition=topic_partition,
            topic_configs=topic_configs,
            config=config,
            settings=tuple(set_ or ()),
            metadata=metadata,
        ),
        first=first,
        end=end,
        isolation=isolation.value,
        max_bytes=max_bytes,
        limit=limit,
        key=key,
        keys=keys.value,
        values=values.value,
        format=format_,
        output=output,
        follow=follow,
    )
    module = "compactor.command_line.log_read_command"
    return Request(
        command="log read",
        carry_out=lambda: import_module(module).result_of(wanted),
        format=Format.TABLE,
        reports=(),
        debug=debug,
    )
