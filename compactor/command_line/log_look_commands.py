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
            help="also the first record that is not older than TIME: epoch milliseconds or "
            "ISO 8601 (UTC unless it has a zone); may be repeated",
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
            help="the first record: an offset; a time, ISO 8601 (UTC unless it has a zone) or @ "
            "and epoch milliseconds, for the first record that is not older; or start",
        ),
    ] = "start",
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="OFFSET|TIME", help="likewise the first record that is not shown"
        ),
    ] = None,
    isolation: Annotated[
        api.Isolation,
        typer.Option(
            help="how far: log-end: all there is, also records of aborted and open transactions; "
            "high-watermark: what is replicated; committed: of that what is decided, without "
            "aborted transactions"
        ),
    ] = api.Isolation.LOG_END,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="only records with this key, written as --keys says"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="RECORDS", min=1, help="no more than so many")
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", min=1, help="of the log's files; no batch is begun beyond them"
        ),
    ] = None,
    keys: Annotated[
        Form, typer.Option(help="how keys are written; json: as a value of its own in JSON")
    ] = Form.TEXT,
    values: Annotated[Form, typer.Option(help="how values are written")] = Form.TEXT,
    format_: Annotated[
        ReadFormat,
        typer.Option(
            "--format",
            help="table: a line a record; json: an object a line, which log append takes; csv; "
            "values: bare bytes, a line feed behind each; parquet: every column, to --output",
        ),
    ] = ReadFormat.TABLE,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="where --format parquet goes")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="go on with what is appended, until interrupted")
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
