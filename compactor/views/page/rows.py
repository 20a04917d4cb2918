"""The logs of a document as rows of the page's table. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.views.report_json import JsonObject

TO_CLEAN = "to-clean"  # the status of a log that a plan takes on
_DONE = ("cleaned", "would-clean")


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

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def active(self) -> int:
        """The active segment; of a log that nobody looked into, all of it."""
        return max(self.total - self.clean - self.dirty - self.waiting, 0)

    @property
    def parts(self) -> tuple[tuple[str, int, str], ...]:
        """From its start to its end: colour, size and words."""
        return (
            ("clean", self.clean, "clean"),
            ("dirty", self.dirty, "dirty, can be cleaned"),
            ("waiting", self.waiting, "dirty, has to wait"),
            ("active", self.active, "active segment, or not looked into"),
        )


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
    return Row(
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
