"""`log roll` and its like, from the words of the command line to a result."""

import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, replace
from enum import StrEnum
from typing import ClassVar

from compactor import api, views
from compactor.command_context import current_context
from compactor.command_line.command import (
    Format,
    Output,
    Result,
    operand,
    output_part,
    part,
    result_of,
)
from compactor.command_line.console import show_lines
from compactor.command_line.shared_options import OF_ONE_LOG, LogCommand
from compactor.host.log_lines import log_line
from compactor.host.printable import printable
from compactor.settings.options import CHANGE, Number, option

RECOVERY = (
    "no broker has stopped cleanly here. --recover-first recovers every log of this directory, as "
    "a broker that starts would, and then asks about the change"
)
YES = ("y", "yes")


class CodecName(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange(LogCommand):
    """One log that is changed, and how that is agreed to."""

    yes: bool = option(False, "", "Do it without asking on the terminal", CHANGE)
    options: api.ChangeOptions = part(
        api.ChangeOptions, "only_replica", "dry_run", "recover_first", "allowed_file_systems"
    )
    rules: api.Rules = part(api.Rules, *OF_ONE_LOG)
    output: Output = output_part("report", "format", "debug")

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        raise NotImplementedError

    def execute(self) -> Result:
        """Change one log, once that is agreed to; show what came of it."""
        name, is_dry = self.NAME.removeprefix("log "), self.options.dry_run
        log = f"{self.topic_partition} in {self.log_dir}"
        told: list[str] = []

        def confirm(outcome: api.Outcome) -> bool:
            if not self.yes and sys.stdout.isatty():
                told.extend(views.change_lines(outcome))
            return agrees([f"{log}:", *views.change_lines(outcome)], self.yes)

        def confirm_recovery(log_dir: str) -> bool:
            return agrees([f"{log_dir}: {RECOVERY}"], self.yes)

        options = replace(
            self.options, rules=self.rules, confirm_recovery=confirm_recovery, confirm=confirm
        )
        outcome = self.change(options)
        if self.output.format is Format.TABLE:
            would = "would be done" if is_dry else "done"
            what = would if outcome.is_changed else "nothing was changed"
            problems = api.start_problems(current_context().log_dirs) if name == "move" else ()
            after = views.after_change(name, current_context().log_dirs, is_dry, problems)
            after = after if outcome.is_changed else []
            new = [line for line in views.change_lines(outcome) if line not in told]
            show_lines([f"{log}: {what}", *new, *after])
        document = views.change_document(self.topic_partition, outcome, is_dry)
        return result_of(self.NAME, document)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollCommand(LogChange):
    """Close the active segment and begin a new one, so that all records so far can be cleaned.

    Records do not change, so it is safe with other replicas. A log with an empty active segment
    stays as it is.

    [dim]compactor log roll /data/kafka orders-0[/]
    """

    NAME: ClassVar[str] = "log roll"

    options: api.ChangeOptions = part(  # replicas stay alike
        api.ChangeOptions, "dry_run", "recover_first", "allowed_file_systems"
    )

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        return api.log_roll(self.log_dir, self.topic_partition, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsCommand(LogChange):
    """Delete the records below an offset, as kafka-delete-records does.

    The log start offset is raised, and segments that are wholly below it are removed. What is
    below it in the next segment stays on disk, and is shown to nobody. A topic whose cleanup.policy
    is compact alone is refused, as by a broker, if its settings are known. So is one whose policy
    only a metadata log has that is damaged or old.

    [dim]compactor log delete-records /data/kafka orders-0 --before 120000 --only-replica[/]
    """

    NAME: ClassVar[str] = "log delete-records"

    before: int | None = option(
        None, "OFFSET", "New log start offset. Default: delete all records", kind=Number(0)
    )

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        return api.log_delete_records(self.log_dir, self.topic_partition, self.before, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateCommand(LogChange):
    """Delete the records from an offset on.

    Whole batches go: where the offset is within one, the log ends where that batch begins. Leader
    epochs, producers, open transactions and the cleaner's checkpoint go back with it.

    [dim]compactor log truncate /data/kafka orders-0 --to 98000 --only-replica[/]
    """

    NAME: ClassVar[str] = "log truncate"

    to: int = option(
        MISSING, "OFFSET", "New log end offset: the first one to delete", kind=Number(0)
    )

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        return api.log_truncate(self.log_dir, self.topic_partition, self.to, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendCommand(LogChange):
    """Append records, as the leader of the log would: a tombstone for a key, or a whole test log.

    They get the next offsets and the log's latest leader epoch, without a producer id. What a
    broker would refuse is refused here, before anything is changed: a record without a key in a
    compacted topic, too large a batch, a timestamp out of bounds. The input is held in memory.

    [dim]echo '{"key": "a", "value": null}' | compactor log append /data/kafka orders-0
    --records - --only-replica --yes[/]
    """

    NAME: ClassVar[str] = "log append"

    path: str = option(
        MISSING,
        "FILE",
        "JSON lines (- for stdin): key, value, timestamp, headers",
        name="--records",
    )
    codec: CodecName = option(
        CodecName.NONE,
        "",
        "Codec of the batches. The topic's compression.type comes first",
        kind=CodecName,
    )

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        records, codec = api.read_records(self.path), self.codec.value
        return api.log_append(self.log_dir, self.topic_partition, records, codec, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortCommand(LogChange):
    """End a hanging transaction by the abort marker that its coordinator would write.

    The last stable offset moves on, readers of committed records and the cleaner with it; the
    records of the transaction count as aborted. The marker has the producer's epoch and the
    coordinator epoch that the log knows, as that of kafka-transactions abort. What the coordinator
    itself knows, in __transaction_state, is not changed: make sure that it does not have this
    transaction open any more, or a producer may go on with it.

    [dim]compactor log abort /data/kafka orders-0 --producer-id 4711 --only-replica[/]
    """

    NAME: ClassVar[str] = "log abort"

    producer_id: int = option(
        MISSING, "ID", "Producer whose transaction to end, as log offsets shows", kind=Number(0)
    )

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        return api.log_abort(self.log_dir, self.topic_partition, self.producer_id, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCommand(LogChange):
    """Move a log to another log directory of the same broker, with its checkpoint entries.

    The log is copied, synced and put in its place, then removed where it was. If that is cut short,
    the same command undoes or finishes it. A broker that is started in between removes half a copy
    by itself; with two whole ones it does not start, and says that the partition is in two
    directories.

    [dim]compactor log move /disk1/kafka orders-0 /disk2/kafka[/]
    """

    NAME: ClassVar[str] = "log move"

    to_dir: str = operand(
        "TO_DIR",
        "Another log directory of the same broker",
        missing="the log directory of this broker that the log is to go to",
    )
    options: api.ChangeOptions = part(api.ChangeOptions, "dry_run", "allowed_file_systems")
    rules: api.Rules = part(api.Rules)
    output: Output = output_part("format", "debug")

    def change(self, options: "api.ChangeOptions") -> "api.Outcome":
        """Change the log, once that is agreed to."""
        return api.log_move(self.log_dir, self.topic_partition, self.to_dir, options)


def agrees(lines: Sequence[str], yes: bool) -> bool:
    """Show what will be done, and ask, unless yes was said already.

    Without a terminal to ask on, nobody agrees.
    """
    if yes:
        return True
    for line in lines:
        log_line(printable(line))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        log_line("There is no terminal to ask on: give --yes to do this.")
        return False
    sys.stderr.write("Do this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in YES
