"""What stands in logs: tables for a person, and a document."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, iso_time, printable, size_text, span_text
from compactor.inspection.inspection import (
    HeavyKey,
    Inspection,
    LogInspection,
    SizeClass,
    Tombstones,
)
from compactor.outcome.round_report import LogStatus
from compactor.views.fitting_table import Column, name_lines, table_lines

DETAILS_OF = 3  # logs at most; of more, a line for each
SHOWN_OF_KEY = 600  # characters: a group and a topic may have 249 each, and more


def inspection_view(inspection: Inspection, width: int) -> RenderableType:
    """Return a line for each log; of a few, everything that is known."""
    parts: list[RenderableType] = [*_overview(inspection.logs, width)]
    if len(inspection.logs) <= DETAILS_OF:
        for log in inspection.logs:
            parts += [Text(""), *_details(log, _name(log, inspection.logs), width)]
    return Group(*parts)


_COLUMNS = (
    Column("size", 2),
    Column("records", 3),
    Column("live keys", 1),
    Column("duplicates", 0),
    Column("tombstones", 4),
    Column("codecs", 5, is_text=True),
)


_KEY_COLUMNS = (Column("versions", 0), Column("bytes", 0), Column("latest offset", 1))

_WORDS = {  # by the outcome in a plan
    "to-clean": "clean it",
    LogStatus.PASSED_OVER.value: "pass it over",
    LogStatus.SET_ASIDE.value: "set it aside",
    "not planned for": "not look at it",
}


def _overview(logs: Sequence[LogInspection], width: int) -> list[Text]:
    """A line each; a log that could not be read has its problem on a line of its own."""
    rows = []
    for log in logs:
        name = _name(log, logs) + (" (sample)" if log.is_sample and not log.problem else "")
        if log.problem is not None:
            rows.append([name, size_text(log.bytes), "", "", "not read", "", ""])
            continue
        rows.append(
            [
                name,
                size_text(log.bytes),
                f"{log.records:,}",
                f"{log.keys.live_keys:,}",
                f"{log.keys.duplicates:,} ({_share(log.keys.duplicates, log.keys.records)})",
                f"{log.tombstones.records:,}",
                ", ".join(dict.fromkeys(kind.codec for kind in log.kinds)),
            ]
        )
    problems = [
        Text(f"{_name(log, logs)}: {printable(log.problem)}") for log in logs if log.problem
    ]
    return [*table_lines("log", _COLUMNS, rows, width), *problems]


def _name(log: LogInspection, logs: Sequence[LogInspection]) -> str:
    """Return a log's name, with its directory where another broker has a log of that name."""
    is_one = sum(each.name == log.name for each in logs) == 1
    return printable(log.name if is_one else f"{log.name} in {log.log_dir}")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _details(log: LogInspection, name: str, width: int) -> Iterator[Text]:
    yield Text(name, "bold", no_wrap=True, overflow="ignore")
    if log.problem is not None:
        yield from name_lines([("", printable(log.problem))], width)
        return
    yield from name_lines([(f"  {fact}", printable(text)) for fact, text in _facts(log)], width)
    for title, keys in (("most versions", log.most_versions), ("most bytes", log.most_bytes)):
        if keys:
            yield from _key_table(f"keys with {title}", keys, width)
    for title, keys in (("groups", log.heavy_groups), ("topics", log.heavy_topics)):
        if keys:
            yield from _key_table(f"{title} with most bytes", keys, width)


def _facts(log: LogInspection) -> Iterator[tuple[str, str]]:
    read = f", {size_text(log.read_bytes)} of it read as a sample" if log.is_sample else ""
    segments = counted(log.segments, "segment")
    yield "log", f"{size_text(log.bytes)} in {segments}{read}"
    yield "a round would", _would(log.plan)
    if log.first_ms is not None and log.last_ms is not None:
        yield "time", f"{iso_time(log.first_ms)} to {iso_time(log.last_ms)}"
    for kind in log.kinds:
        text = f"{size_text(kind.bytes)}, {counted(kind.records, 'record')}"
        yield f"{kind.format} {kind.codec}", f"{text} in batches: {kind.batches:,}"
    yield "batches", f"{log.batches:,}; {_middle(log.batch_sizes, log.greatest_batch)}"
    records = f"{log.records:,}, {size_text(log.record_bytes)} not compressed"
    yield "records", f"{records}; {_middle(log.record_sizes, log.greatest_record)}"
    others = [
        (log.null_keys, "without a key"),
        (log.aborted_records, "of aborted transactions"),
        (log.control_records, "control records besides"),
        (log.empty_batches, "batches without records"),
    ]
    said = [f"{count:,} {what}" for count, what in others if count]
    if said:
        yield "among them", ", ".join(said)
    yield from _key_facts(log)
    yield from _tombstone_facts(log.tombstones)
    for txn in log.open_transactions:
        who = f"producer {txn.producer_id}"
        if txn.transactional_id is not None:
            who += f" ({txn.transactional_id})"
        heard = "" if txn.age_ms is None else f", last heard of {span_text(txn.age_ms)} ago"
        yield (
            "open transaction",
            f"{who}, epoch {txn.producer_epoch}, from offset {txn.first_offset} on{heard}; "
            f"keeps {size_text(txn.blocked_bytes)} from being cleaned",
        )
    if log.gains_nothing:
        yield "compaction", "would gain nothing: no duplicate, no tombstone, nothing aborted"


def _would(plan: str) -> str:
    """What a round would do with the log, as a sentence goes on."""
    outcome, colon, why = plan.partition(": ")
    return f"{_WORDS.get(outcome, outcome)}{colon}{why}"


def _key_facts(log: LogInspection) -> Iterator[tuple[str, str]]:
    keys = log.keys
    of_sample = " in the sample" if log.is_sample else ""
    yield "keys", f"{keys.keys:,}{of_sample}, {keys.live_keys:,} of them live"
    gone = keys.bytes - keys.live_bytes
    yield (
        "duplicates",
        f"{keys.duplicates:,} of {keys.records:,} records with a key; of "
        f"{size_text(keys.bytes)} the latest records are {size_text(keys.live_bytes)}, and "
        f"{size_text(gone)} superseded or tombstones",
    )
    told = [f"{_range(cls)}: {counted(cls.members, 'key')}" for cls in keys.versions]
    yield "versions", ", ".join(told) or "none"


def _tombstone_facts(tombstones: Tombstones) -> Iterator[tuple[str, str]]:
    if not tombstones.records:
        yield "tombstones", "none"
        return
    latest = tombstones.latest_of_their_keys
    last = "" if latest is None else f", {latest:,} of them the latest of their key"
    yield "tombstones", f"{tombstones.records:,}, {size_text(tombstones.bytes)}{last}"
    if tombstones.oldest_ms is not None and tombstones.newest_ms is not None:
        yield "  written", f"{iso_time(tombstones.oldest_ms)} to {iso_time(tombstones.newest_ms)}"
    for why in tombstones.why:
        yield "  still there", why
    if tombstones.earliest_removal_ms is not None:
        yield "  can go from", iso_time(tombstones.earliest_removal_ms)


def _range(of: SizeClass) -> str:
    return f"{of.least:,}" if of.least == of.greatest else f"{of.least:,}-{of.greatest:,}"


def _middle(classes: Sequence[SizeClass], greatest: int | None) -> str:
    """Return where the median of all sizes lies, and the greatest."""
    half, before = sum(cls.members for cls in classes) / 2, 0
    for cls in classes:
        before += cls.members
        if before >= half:
            most = size_text(min(cls.greatest, greatest or 0))
            return f"half have at most {most}, the largest has {size_text(greatest or 0)}"
    return "none"


def _key_table(title: str, keys: Sequence[HeavyKey], width: int) -> Iterator[Text]:
    """A line each; a key that is too long to stand beside its numbers has one of its own."""
    rows = [
        [f"  {_key_text(key)}", f"{key.versions:,}", size_text(key.bytes), str(key.latest_offset)]
        for key in keys
    ]
    yield Text("")
    yield from table_lines(f"  {title}", _KEY_COLUMNS, rows, width)


def _key_text(key: HeavyKey) -> str:
    """Return a key as text, cut where it is longer than any name may be; JSON has it whole."""
    if key.key is None:
        return "(not read)"
    text = f"0x{key.key}" if key.is_hex else printable(key.key)
    more = len(text) - SHOWN_OF_KEY
    return text if more <= 0 else f"{text[:SHOWN_OF_KEY]}… and {counted(more, 'character')} more"
