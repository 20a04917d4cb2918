"""The commands of `compactor log` that change one log."""

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from compactor.command_line.log_options import (
    LogDir,
    LogDryRun,
    OnlyReplica,
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


class CodecName(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


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


def delete_records(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    before: Annotated[
        int | None,
        typer.Option(
            "--before",
            metavar="OFFSET",
            min=0,
            help="the log begins here from now on; without it all records go",
        ),
    ] = None,
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
) -> Request:
    """Delete the records below an offset, as kafka-delete-records does.

    The log start offset is raised, and segments that are wholly below it are removed. What is
    below it in the next segment stays on disk, and is shown to nobody. A topic whose cleanup.policy
    is compact alone is refused, as by a broker, if --topic-configs or --set says so.

    [dim]compactor log delete-records /data/kafka orders-0 --before 120000 --only-replica[/]
    """
    wanted = ChangeArguments(
        log=LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ())),
        only_replica=only_replica,
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        before=before,
    )
    return _request("delete-records", wanted, debug)


def truncate(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    to: Annotated[
        int,
        typer.Option(
            "--to", metavar="OFFSET", min=0, help="the log ends here: the first offset that goes"
        ),
    ],
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
) -> Request:
    """Delete the records from an offset on.

    Whole batches go: where the offset is within one, the log ends where that batch begins. Leader
    epochs, producers, open transactions and the cleaner's checkpoint go back with it.

    [dim]compactor log truncate /data/kafka orders-0 --to 98000 --only-replica[/]
    """
    wanted = ChangeArguments(
        log=LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ())),
        only_replica=only_replica,
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        to=to,
    )
    return _request("truncate", wanted, debug)


def append(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    records: Annotated[
        str,
        typer.Option(
            "--records",
            metavar="FILE",
            help="a JSON object a line, - for standard input: key, value (text, null, "
            '{"hex": ...} or {"base64": ...}), timestamp (ms; now), headers ([[name, value], ...])',
        ),
    ],
    codec: Annotated[
        CodecName,
        typer.Option("--codec", help="of the batches; the topic's compression.type comes first"),
    ] = CodecName.NONE,
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
) -> Request:
    """Append records, as the leader of the log would: a tombstone for a key, or a whole test log.

    They get the next offsets and the log's latest leader epoch, without a producer id. What a
    broker would refuse is refused here, before anything is changed: a record without a key in a
    compacted topic, too large a batch, a timestamp out of bounds. The input is held in memory.

    [dim]echo '{"key": "a", "value": null}' | compactor log append /data/kafka orders-0
    --records - --only-replica --yes[/]
    """
    wanted = ChangeArguments(
        log=LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ())),
        only_replica=only_replica,
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        records=records,
        codec=codec.value,
    )
    return _request("append", wanted, debug)


def abort(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    producer_id: Annotated[
        int,
        typer.Option(
            "--producer-id",
            metavar="ID",
            min=0,
            help="whose transaction to end; compactor log offsets shows those that are open",
        ),
    ],
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
) -> Request:
    """End a hanging transaction by the abort marker that its coordinator would write.

    The last stable offset moves on, readers of committed records and the cleaner with it; the
    records of the transaction count as aborted. The marker has the producer's epoch and the
    coordinator epoch that the log knows, as that of kafka-transactions abort. What the coordinator
    itself knows, in __transaction_state, is not changed: make sure that it does not have this
    transaction open any more, or a producer may go on with it.

    [dim]compactor log abort /data/kafka orders-0 --producer-id 4711 --only-replica[/]
    """
    wanted = ChangeArguments(
        log=LogArguments(log_dir, topic_partition, topic_configs, config, tuple(set_ or ())),
        only_replica=only_replica,
        yes=yes,
        dry_run=dry_run,
        recover_first=recover_first,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        producer_id=producer_id,
    )
    return _request("abort", wanted, debug)


def move(  # one parameter an option: this is how typer learns of them
    log_dir: LogDir,
    topic_partition: TopicPartition,
    to_dir: Annotated[
        str, typer.Argument(metavar="TO_DIR", help="another log directory of the same broker")
    ],
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="say what would be done, and change nothing")
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
    wanted = ChangeArguments(
        log=LogArguments(log_dir, topic_partition, None, None, ()),
        yes=yes,
        dry_run=dry_run,
        recover_first=False,
        allowed_file_systems=tuple(allow_file_system or ()),
        format=format_,
        to_dir=to_dir,
    )
    return _request("move", wanted, debug)


def _request(name: str, wanted: ChangeArguments, debug: bool) -> Request:
    module = "compactor.command_line.log_change_command"
    return Request(
        f"log {name}",
        lambda: import_module(module).result_of(name, wanted),
        wanted.format,
        None,
        debug,
    )
