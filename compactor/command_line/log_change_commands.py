"""The commands of `compactor log` that change one log."""

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from compactor import api
from compactor.command_line.log_options import LogDir, TopicPartition, Yes
from compactor.command_line.log_requests import ChangeCall, LogArguments, SharedArguments
from compactor.command_line.options import AllowFileSystem, Debug, OutputFormat
from compactor.command_line.requests import Format, Request
from compactor.command_line.shared_options import with_shared_options


class CodecName(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


@with_shared_options(may_make_replicas_differ=False)
def roll(shared: SharedArguments) -> Request:
    """Close the active segment and begin a new one, so that all records so far can be cleaned.

    Records do not change, so it is safe with other replicas. A log with an empty active segment
    stays as it is.

    [dim]compactor log roll /data/kafka orders-0[/]
    """
    return _request(
        "roll",
        shared,
        lambda log_dir, log, options: api.log_roll(log_dir, log, options),
    )


@with_shared_options(may_make_replicas_differ=True)
def delete_records(
    shared: SharedArguments,
    before: Annotated[
        int | None,
        typer.Option(
            "--before",
            metavar="OFFSET",
            min=0,
            help="New log start offset. Default: delete all records",
        ),
    ] = None,
) -> Request:
    """Delete the records below an offset, as kafka-delete-records does.

    The log start offset is raised, and segments that are wholly below it are removed. What is
    below it in the next segment stays on disk, and is shown to nobody. A topic whose cleanup.policy
    is compact alone is refused, as by a broker, if its settings are known. So is one whose policy
    only a metadata log has that is damaged or old.

    [dim]compactor log delete-records /data/kafka orders-0 --before 120000 --only-replica[/]
    """
    return _request(
        "delete-records",
        shared,
        lambda log_dir, log, options: api.log_delete_records(log_dir, log, before, options),
    )


@with_shared_options(may_make_replicas_differ=True)
def truncate(
    shared: SharedArguments,
    to: Annotated[
        int,
        typer.Option(
            "--to", metavar="OFFSET", min=0, help="New log end offset: the first one to delete"
        ),
    ],
) -> Request:
    """Delete the records from an offset on.

    Whole batches go: where the offset is within one, the log ends where that batch begins. Leader
    epochs, producers, open transactions and the cleaner's checkpoint go back with it.

    [dim]compactor log truncate /data/kafka orders-0 --to 98000 --only-replica[/]
    """
    return _request(
        "truncate",
        shared,
        lambda log_dir, log, options: api.log_truncate(log_dir, log, to, options),
    )


@with_shared_options(may_make_replicas_differ=True)
def append(
    shared: SharedArguments,
    records: Annotated[
        str,
        typer.Option(
            "--records",
            metavar="FILE",
            help="JSON lines (- for stdin): key, value, timestamp, headers",
        ),
    ],
    codec: Annotated[
        CodecName,
        typer.Option(
            "--codec", help="Codec of the batches. The topic's compression.type comes first"
        ),
    ] = CodecName.NONE,
) -> Request:
    """Append records, as the leader of the log would: a tombstone for a key, or a whole test log.

    They get the next offsets and the log's latest leader epoch, without a producer id. What a
    broker would refuse is refused here, before anything is changed: a record without a key in a
    compacted topic, too large a batch, a timestamp out of bounds. The input is held in memory.

    [dim]echo '{"key": "a", "value": null}' | compactor log append /data/kafka orders-0
    --records - --only-replica --yes[/]
    """
    return _request(
        "append",
        shared,
        lambda log_dir, log, options: api.log_append(
            log_dir, log, api.read_records(records), codec.value, options
        ),
    )


@with_shared_options(may_make_replicas_differ=True)
def abort(
    shared: SharedArguments,
    producer_id: Annotated[
        int,
        typer.Option(
            "--producer-id",
            metavar="ID",
            min=0,
            help="Producer whose transaction to end, as log offsets shows",
        ),
    ],
) -> Request:
    """End a hanging transaction by the abort marker that its coordinator would write.

    The last stable offset moves on, readers of committed records and the cleaner with it; the
    records of the transaction count as aborted. The marker has the producer's epoch and the
    coordinator epoch that the log knows, as that of kafka-transactions abort. What the coordinator
    itself knows, in __transaction_state, is not changed: make sure that it does not have this
    transaction open any more, or a producer may go on with it.

    [dim]compactor log abort /data/kafka orders-0 --producer-id 4711 --only-replica[/]
    """
    return _request(
        "abort",
        shared,
        lambda log_dir, log, options: api.log_abort(log_dir, log, producer_id, options),
    )


def move(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    to_dir: Annotated[
        str, typer.Argument(metavar="TO_DIR", help="Another log directory of the same broker")
    ],
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and change nothing")
    ] = False,
    allow_file_system: AllowFileSystem = None,
    format_: OutputFormat = Format.TABLE,
    debug: Debug = False,
) -> Request:
    """Move a log to another log directory of the same broker, with its checkpoint entries.

    The log is copied, synced and put in its place, then removed where it was. If that is cut short,
    the same command undoes or finishes it. A broker that is started in between removes half a copy
    by itself; with two whole ones it does not start, and says that the partition is in two
    directories.

    [dim]compactor log move /disk1/kafka orders-0 /disk2/kafka[/]
    """
    shared = SharedArguments(
        log=LogArguments(log_dir=log_dir, topic_partition=topic_partition),
        yes=yes,
        dry_run=dry_run,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        debug=debug,
    )
    return _request(
        "move",
        shared,
        lambda log_dir, log, options: api.log_move(log_dir, log, to_dir, options),
    )


def _request(name: str, shared: SharedArguments, change: ChangeCall) -> Request:
    module = "compactor.command_line.log_change_command"
    return Request(
        command=f"log {name}",
        carry_out=lambda: import_module(module).result_of(name, shared, change),
        format=shared.format,
        reports=shared.reports,
        debug=shared.debug,
    )
