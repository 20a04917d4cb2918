"""The logs of a document as rows of the page's table. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from compactor.views.report_json import JsonObject

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
        """As it was when it was planned."""
        return Sections(self.clean, self.dirty, self.waiting, self.active)


def rows_of(document: JsonObject) -> list[Row]:
    """Of a run or a plan; none of any other document, or where a command ended before."""
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
    """What there is after a run. A log that failed may have kept some of its cleaned segments."""
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
