"""Views of the commands on one log: its offsets, and a change of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from compactor.host.printable import counted, iso_time, printable, size_text
from compactor.host.shell_commands import about_file
from compactor.offline_log.log_offsets import Ends, LogOffsets
from compactor.offline_log.truncate import AppendedRecord, Outcome
from compactor.outcome.json_values import OF_ENDING


def offsets_view(offsets: LogOffsets) -> RenderableType:
    """Return the offsets, then leader epochs, open transactions and times, if any."""
    size = f"{counted(offsets.segments, 'segment')}, {size_text(offsets.size_bytes)}"
    heading = Text(printable(f"{offsets.name}: {size}"), no_wrap=True, overflow="ignore")
    parts: list[RenderableType] = [heading]
    parts.append(_table(("offset", "is", "note"), _rows(offsets)))
    if offsets.epochs:
        epochs = [tuple(map(str, epoch)) for epoch in offsets.epochs]
        parts.append(_table(("leader epoch", "from", "up to"), iter(epochs)))
    if offsets.open_transactions:
        parts.append(_table(("open transaction of", "epoch", "from", "last batch"), _open(offsets)))
    if offsets.times:
        parts.append(_table(("time", "offset", "time of that record"), _times(offsets)))
    return Group(*parts)


def warnings_of(offsets: LogOffsets) -> list[str]:
    """Return what a person should know before relying on these numbers."""
    warnings = [
        f"{path}: a broker that starts would cut off the end of it, or all of it; what is said "
        f"here is without that. This says what is wrong: {about_file('verify', path)}"
        for path in offsets.hidden
    ]
    if not offsets.has_clean_shutdown:
        warnings.append(
            "the broker did not stop cleanly, or is running: this is what it would find if it "
            "started now"
        )
    return warnings


def _table(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number == 1 else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _rows(offsets: LogOffsets) -> Iterator[tuple[str, str, str]]:
    behind = offsets.log_end - offsets.high_watermark
    replicated = f"{counted(behind, 'offset')} behind it are not known to be replicated"
    unknown = "no checkpoint says how far the log is replicated: taken to be its end"
    undecided = "open transactions begin there" if offsets.open_transactions else ""
    yield "log start", str(offsets.log_start), ""
    yield (
        "cleaner checkpoint",
        "none" if offsets.cleaner is None else str(offsets.cleaner),
        "" if offsets.cleaner is None else "what is below was cleaned",
    )
    yield "recovery point", str(offsets.recovery_point), "what is below is on disk"
    yield (
        "last stable offset",
        str(offsets.last_stable),
        undecided if offsets.last_stable < offsets.high_watermark else "",
    )
    note = (replicated if behind else "") if offsets.is_high_watermark_known else unknown
    yield "high watermark", str(offsets.high_watermark), note
    yield "log end", str(offsets.log_end), "the next record gets it"


def _open(offsets: LogOffsets) -> Iterator[tuple[str, str, str, str]]:
    for txn in offsets.open_transactions:
        yield (
            f"producer {txn.producer_id}",
            str(txn.producer_epoch),
            str(txn.first_offset),
            iso_time(txn.last_timestamp_ms) if txn.last_timestamp_ms is not None else "-",
        )


def _times(offsets: LogOffsets) -> Iterator[tuple[str, str, str]]:
    for time in offsets.times:
        record_ms = time.timestamp_ms
        yield (
            iso_time(time.asked_ms),
            "none: all are older" if time.offset is None else str(time.offset),
            "" if record_ms is None else iso_time(record_ms),
        )


_WORDS = {
    "log_start": "log start offset",
    "log_end": "log end offset",
    "high_watermark": "high watermark",
    "last_stable": "last stable offset",
    "segments": "segments",
    "size_bytes": "bytes",
}


def change_lines(outcome: Outcome) -> list[str]:
    """Return what is done, then each number that changes."""
    lines = [f"  {outcome.does}"]
    for name, words in _WORDS.items():
        before, after = getattr(outcome.before, name), getattr(outcome.after, name)
        if before != after:
            lines.append(f"  {words}: {before:,} becomes {after:,}")
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChangeDocument:
    """A change of one log, or what it would be."""

    topic: str
    partition: int
    dry_run: bool
    changed: bool = field(metadata=OF_ENDING)
    does: str
    before: Ends
    after: Ends
    appended: Sequence[AppendedRecord]


def change_document(name: str, outcome: Outcome, is_dry_run: bool) -> LogChangeDocument:
    """Return a change as JSON. name: of the log, like orders-0, which exists."""
    topic, _, partition = name.rpartition("-")
    return LogChangeDocument(
        topic=topic,
        partition=int(partition),
        dry_run=is_dry_run,
        changed=outcome.is_changed and not is_dry_run,
        does=outcome.does,
        before=outcome.before,
        after=outcome.after,
        appended=outcome.appended,
    )
