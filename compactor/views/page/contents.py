"""The contents of a report's page: verdict, numbers, charts, and the logs as rows. Pure.

Made of the document of a run, dry or real, of a plan, or of a command that ended before either.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from compactor.host.printable import counted, one_line, printable, size_text
from compactor.planning.expected import Gain, gain_text
from compactor.planning.remedies import REMEDIES, NamedLog, remedy_of
from compactor.reason_codes import ReasonCode
from compactor.views.next_steps import records_gone
from compactor.views.report_json import JsonObject, phase_name

TO_CLEAN = "to-clean"  # the status of a log that a plan takes on
_DONE = ("cleaned", "would-clean")
_RETENTION_RULES = ("log_start", "size", "time")


class Sections(NamedTuple):
    """Bytes of `.log` files, from the start of a log to its end."""

    clean: int
    dirty: int  # that can be cleaned
    waiting: int  # dirty, and kept from being cleaned
    active: int  # the active segment; of a log that nobody looked into, all of it

    @property
    def total(self) -> int:
        return sum(self)


@dataclass(frozen=True, slots=True)
class Row:
    """One log. Bytes are those of `.log` files, when it was planned."""

    log_dir: str
    topic: str
    partition: int
    status: str
    code: str | None
    reason: str | None
    total: int
    clean: int
    dirty: int  # that can be cleaned
    waiting: int  # dirty, and kept from being cleaned
    gain: int  # what went, or would go; of a plan what is dirty
    after: Sections | None = None  # a run, dry or real; None: a plan, or it is not known

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def active(self) -> int:
        """The active segment; of a log that nobody looked into, all of it."""
        return max(self.total - self.clean - self.dirty - self.waiting, 0)

    @property
    def sections(self) -> Sections:
        """Sections of the log when it was planned."""
        return Sections(self.clean, self.dirty, self.waiting, self.active)


def rows_of(document: JsonObject) -> list[Row]:
    """Return the rows of a run or a plan; none of any other document, or of one that failed."""
    if document["command"] not in ("plan", "run"):
        return []
    return list(_rows(document))


def _rows(document: JsonObject) -> Iterator[Row]:
    for log in document.get("logs", ()):
        yield _row(log, log.get("status", TO_CLEAN))
    for log in document.get("not_taken", ()):
        yield _row(log, log["status"])


def _row(log: JsonObject, status: str) -> Row:
    dirty, held = log.get("dirty_bytes") or 0, log.get("held_bytes") or 0
    total = log.get("total_bytes")
    before = log.get("bytes_before", 0)
    gain = before - log["bytes_after"] if status in _DONE else log.get("gain_bytes") or 0
    row = Row(
        log_dir=log["log_dir"],
        topic=log["topic"],
        partition=log["partition"],
        status=status,
        code=log.get("reason_code"),
        reason=log.get("reason"),
        total=before if total is None else total,
        clean=log.get("clean_bytes") or 0,
        dirty=dirty - held,
        waiting=held,
        gain=max(gain, 0),
    )
    return row if "bytes_after" not in log else replace(row, after=_after(row, log))


def _after(row: Row, log: JsonObject) -> Sections | None:
    """Return a log's sections after a run; None of one that failed: it may be partly cleaned."""
    if row.status == "failed":
        return None
    clean, dirty, waiting, active = row.sections
    if row.status in _DONE:
        clean = max(clean + dirty - log["bytes_before"], 0) + log["bytes_after"]
        dirty = 0
    retention = log.get("retention") or {}
    gone = sum(retention[rule]["bytes"] for rule in _RETENTION_RULES if rule in retention)
    left = []
    for size in (clean, dirty, waiting, active):  # retention takes the oldest segments
        left.append(max(size - gone, 0))
        gone = max(gone - size, 0)
    return Sections(*left)


_CODES = {code.value: code for code in REMEDIES}
_WORDS = {  # of the sections of a log
    "clean": "clean",
    "dirty": "dirty, can be cleaned",
    "waiting": "dirty, has to wait",
    "active": "active segment, or not looked into",
}
SHOWN_BARS = 8
SHOWN_LARGEST = 12


class Bar(NamedTuple):
    label: str
    percent: float  # of the longest one
    text: str
    kind: str = "bar"  # its colour


class Chart(NamedTuple):
    title: str
    note: str
    bars: list[Bar]


class Tile(NamedTuple):
    name: str
    value: str
    note: str = ""


class DrawnPart(NamedTuple):
    kind: str
    percent: float  # of the log
    title: str


class Drawn(NamedTuple):
    """A log drawn to scale."""

    label: str
    percent: float  # of the largest log
    text: str
    parts: list[DrawnPart]
    after_percent: float = 0.0
    after: list[DrawnPart] | None = None  # None: a plan, or it is not known


class Sentence(NamedTuple):
    text: str
    mood: str  # good, warn, bad


class Help(NamedTuple):
    """What to do about logs that are not cleaned for one reason; commands are for one of them."""

    reason: str
    logs: str
    words: str
    commands: tuple[str, ...]


def help_of(rows: Iterable[Row], may_start: bool = True) -> list[Help]:
    """Return help for each reason that something can be done about, that of most bytes first.

    may_start: whether a broker that starts goes well.
    """
    by_code: dict[ReasonCode, list[Row]] = {}
    for row in rows:
        if row.code in _CODES and REMEDIES[_CODES[row.code]].briefly:
            by_code.setdefault(_CODES[row.code], []).append(row)
    found = []
    for code, same in sorted(by_code.items(), key=lambda item: -sum(r.total for r in item[1])):
        largest = max(same, key=lambda row: row.total)
        others = (row.log_dir for row in same if row.name == largest.name and row is not largest)
        place = NamedLog(largest.log_dir, largest.topic, largest.partition, tuple(others))
        words, commands, _ = remedy_of(code, place, may_start)
        named = one_line(largest.name) if len(same) == 1 else f"{len(same):,} logs"
        found.append(Help(code.value, named, one_line(words), tuple(map(one_line, commands))))
    return found


def verdict_of(document: JsonObject) -> Sentence:
    """The first sentence: what came of it."""
    if "error" in document:
        return Sentence(one_line(document["error"]) + ".", "bad")
    gone = [
        f"{log['topic']}-{log['partition']}"
        for log in document.get("not_taken") or document.get("logs") or ()
        if log.get("reason_code") == ReasonCode.LOG_MISSING
    ]
    if gone:
        return Sentence(" ".join(records_gone(gone)), "bad")
    mood = {0: "good", 1: "bad"}.get(document["exit_code"], "warn")
    totals = document.get("totals", {})
    if document["command"] == "plan":
        gain = size_text(totals["cleanable_bytes"])
        logs = counted(totals["to_clean"], "log")
        text = f"{logs} would be cleaned; {gain} of them are dirty." if totals["to_clean"] else ""
        return Sentence(text or "No log needs compaction now.", mood)
    if document["command"] == "run":
        return Sentence(_of_run(document), mood)
    if "against" in document:
        return Sentence(_of_comparison(document["against"]), mood)
    return Sentence(f"{document['command']}: {document['status']}.", mood)


def _of_comparison(against: JsonObject) -> str:
    counts = (f"{count:,} {name}" for name, count in against["soundness"].items())
    return f"Logs against {one_line(against['before'])}: {', '.join(counts)}."


def _of_run(document: JsonObject) -> str:
    totals = document["totals"]
    before, after = totals["bytes_before"], totals["bytes_after"]
    logs = totals["logs"]
    done = logs["would-clean"] if document["dry_run"] else logs["cleaned"]
    if not done:
        return "No log was cleaned." if logs["failed"] else "No log needs compaction now."
    share = (
        f", {abs(1 - after / before):.1%} {'less' if after <= before else 'more'}" if before else ""
    )
    words = "would be cleaned" if document["dry_run"] else "cleaned"
    sizes = f"{size_text(before)} → {size_text(after)}"
    return f"{counted(done, 'log')} {words}: {sizes}{share}."


def tiles_of(document: JsonObject, rows: Sequence[Row]) -> list[Tile]:
    """The numbers below the verdict."""
    if not rows:
        return []
    total = sum(row.total for row in rows)
    tiles = [Tile("Logs", f"{len(rows):,}", size_text(total))]
    by_status: dict[str, list[Row]] = {}
    for row in rows:
        by_status.setdefault(row.status, []).append(row)
    for status, found in sorted(by_status.items()):
        tiles.append(
            Tile(
                status.replace("-", " "), f"{len(found):,}", size_text(sum(r.total for r in found))
            )
        )
    waiting = sum(row.waiting for row in rows)
    if waiting:
        tiles.append(Tile("dirty, has to wait", size_text(waiting)))
    expected = document.get("expected") or {}
    if expected.get("least_bytes") is not None:
        gain = Gain(expected["least_bytes"], expected["most_bytes"], expected["untold"])
        note = f"{counted(gain.untold, 'log')} not known" if gain.untold else ""
        tiles.append(Tile("estimated gain", gain_text(gain), note))
    return tiles


def charts_of(document: JsonObject, rows: Sequence[Row]) -> list[Chart]:
    """The charts for which something is known; a plan knows what is dirty, a run what it freed."""
    is_plan = document["command"] == "plan"
    title = "Most dirty to clean" if is_plan else "Biggest gains"
    note = "dirty bytes that a run would clean" if is_plan else "bytes before, less those after"
    charts = [
        Chart("Bytes by reason", "size of the logs, by what became of them", _by_reason(rows)),
        Chart(title, note, _gains(rows)),
        Chart("Records removed", "by the reason for which they went", _dropped(document)),
        Chart("Phases", "seconds; some go on at the same time", _phases(document)),
    ]
    return [chart for chart in charts if chart.bars]


def largest_of(rows: Iterable[Row]) -> list[Drawn]:
    """The largest logs, all on one scale; those of a run before it and after it."""
    found = sorted((row for row in rows if row.total), key=lambda row: -row.total)[:SHOWN_LARGEST]
    longest = max((max(row.total, row.after.total if row.after else 0) for row in found), default=0)
    return [_drawn(row, longest) for row in found]


def _drawn(row: Row, longest: int) -> Drawn:
    before = Drawn(
        label=printable(row.name),
        percent=_percent(row.total, longest),
        text=size_text(row.total),
        parts=_drawn_parts(row.sections),
    )
    if row.status == "failed":
        return before._replace(text=f"{before.text} → not known")
    if row.after is None:
        return before
    return before._replace(
        text=f"{before.text} → {size_text(row.after.total)}",
        after_percent=_percent(row.after.total, longest),
        after=_drawn_parts(row.after),
    )


def _drawn_parts(sections: Sections) -> list[DrawnPart]:
    return [
        DrawnPart(kind, _percent(size, sections.total), f"{size_text(size)} {_WORDS[kind]}")
        for kind, size in sections._asdict().items()
        if size
    ]


def _by_reason(rows: Sequence[Row]) -> list[Bar]:
    sums: dict[str, int] = {}
    logs: dict[str, int] = {}
    for row in rows:
        key = row.code or row.status
        sums[key] = sums.get(key, 0) + row.total
        logs[key] = logs.get(key, 0) + 1
    return _bars(sums, lambda name: f"{size_text(sums[name])} · {logs[name]:,}")


def _gains(rows: Sequence[Row]) -> list[Bar]:
    gains: dict[str, int] = {}
    for row in rows:
        if row.gain > 0:
            gains[printable(row.name)] = gains.get(printable(row.name), 0) + row.gain
    return _bars(gains, lambda name: size_text(gains[name]), "gain")


def _dropped(document: JsonObject) -> list[Bar]:
    if document["command"] != "run":  # elsewhere "records" is a number
        return []
    records: dict[str, Any] = document.get("totals", {}).get("records", {}).get("dropped", {})
    found = {name.replace("_", " "): count for name, count in records.items() if count}
    return _bars(found, lambda name: f"{found[name]:,}")


def _phases(document: JsonObject) -> list[Bar]:
    phases = [phase for phase in document.get("phases", ()) if phase["seconds"] > 0]
    longest = max((phase["seconds"] for phase in phases), default=0)
    return [
        Bar(
            phase_name(phase["name"]),
            _percent(phase["seconds"], longest),
            f"{phase['seconds']:.1f} s",
        )
        for phase in phases
    ]


def _bars(sizes: dict[str, int], text: Callable[[str], str], kind: str = "bar") -> list[Bar]:
    found = sorted((name for name in sizes if sizes[name]), key=lambda name: (-sizes[name], name))
    return [
        Bar(name, _percent(sizes[name], sizes[found[0]]), text(name), kind)
        for name in found[:SHOWN_BARS]
    ]


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
