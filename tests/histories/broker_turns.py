"""What a script says that a broker does, as operations for java/LogOperation.java.

The truth is told of what is appended and truncated as it is asked for: a broker that is in order
does it. All else that a result tells is taken over by `Asked.done`.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.histories.log_model import LogModel, Tombstone
from tests.histories.script import Operation
from tests.histories.truth import Batch, Kind, LogTruth, Record

Request = dict[str, Any]
VALUE_FILLING = "."


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation, and what has to come of it."""

    model: LogModel
    request: Request
    now_ms: int
    config: Mapping[str, str]
    life: int
    batch: Batch | None = None

    def done(self, result: Mapping[str, Any]) -> Iterator[str]:
        """Take over what came of it; what is wrong with that."""
        model, what = self.model, self.request["op"]
        if "error" in result:
            yield f"{what}: {result['error']}"
            return
        if self.batch is not None:
            expected = self.batch.base_offset, self.batch.last_offset
            if (result["first"], result["last"]) != expected:
                yield f"{what}: {result['first']} to {result['last']}, expected {expected}"
        if model.life != self.life:  # deleted, and created anew, since this was asked
            return
        for record in self.batch.records if self.batch is not None else ():
            if record.value is None:
                model.tombstones[record.offset] = Tombstone()
        if result.get("cleaned"):
            model.cleaned(self.now_ms, self.config)
        if "start" in result:
            model.began_at(result["start"])
        if result.get("moved"):  # the other directory's checkpoint has not heard of it
            model.durable_start = 0


def asked(model: LogModel, operation: Operation, now_ms: int) -> Iterator[Asked]:
    """Nothing where it does not apply to the log as it is."""
    what = operation["op"]
    if what == "create":
        if not model.exists:
            yield _create(model, operation, now_ms)
        return
    if not model.exists:
        return
    if what == "append":
        yield from _append(model, operation, now_ms)
    elif what == "end":
        yield from _end(model, operation, now_ms)
    elif what == "new_epoch":
        if operation["pid"] not in model.truth.open_transactions():
            epochs = model.truth.producer_epochs
            epochs[operation["pid"]] = epochs.get(operation["pid"], 0) + 1
    elif what == "leader":
        model.truth.leader_epoch += 1
    elif what in ("lag", "catch_up"):
        model.follows = what == "catch_up"
        yield from high_watermark(model, now_ms)
    elif what == "config":
        model.config |= operation["config"]
        yield _plain(model, "config", now_ms, config=dict(model.config))
    else:
        yield from _at_offset(model, operation, now_ms)


def high_watermark(model: LogModel, now_ms: int) -> Iterator[Asked]:
    """What the leader says, or the log itself where it is the only one."""
    truth = model.truth
    if model.follows:
        truth.high_watermark = truth.end
    yield _plain(model, "high_watermark", now_ms, offset=truth.high_watermark)


def _plain(model: LogModel, what: str, now_ms: int, **fields: Any) -> Asked:
    request = {"log": model.partition, "op": what, **fields}
    return Asked(model, request, now_ms, dict(model.config), model.life)


def _create(model: LogModel, operation: Operation, now_ms: int) -> Asked:
    number = f"{model.name}/{model.life + 1}".encode()
    topic_id = _uuid_text(number) if operation.get("id", True) else None
    model.create(topic_id, operation.get("dir", 0))
    return _plain(model, "create", now_ms, dir=model.directory, topic_id=topic_id)


def _uuid_text(name: bytes) -> str:
    """As Kafka writes it; never one that begins with a dash, as Kafka's own do not."""
    data = bytes([1]) + hashlib.sha256(name).digest()[:15]
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _append(model: LogModel, operation: Operation, now_ms: int) -> Iterator[Asked]:
    truth, keys = model.truth, operation["keys"]
    if not _is_ready(truth, operation.get("pid")):
        return
    base, timestamp = truth.end, now_ms - operation.get("late", 0)
    filling = VALUE_FILLING * operation.get("bytes", 0)
    records = tuple(
        Record(
            base + i,
            letter.lower(),
            None if letter.isupper() else f"{letter}{base + i}{filling}",
            timestamp,
        )
        for i, letter in enumerate(keys)
    )
    batch = Batch(base, base + len(records) - 1, truth.leader_epoch, records=records)
    fields: dict[str, Any] = {"codec": operation.get("codec", "none")}
    if "pid" in operation:
        pid = operation["pid"]
        epoch = truth.producer_epochs.setdefault(pid, 0)
        sequence = truth.next_sequence(pid)
        is_transactional = operation.get("txn", False)
        fields |= {"pid": pid, "epoch": epoch, "seq": sequence, "txn": is_transactional}
        batch = Batch(
            base, batch.last_offset, truth.leader_epoch, pid, epoch,
            sequence + len(records) - 1, is_transactional, records=records,
        )  # fmt: skip
    rows = [[record.key, record.value, record.timestamp_ms] for record in records]
    yield _written(model, "append", batch, now_ms, records=rows, **fields)
    if model.follows:
        yield from high_watermark(model, now_ms)


def _is_ready(truth: LogTruth, producer_id: int | None) -> bool:
    """Whether a producer can go on; one that was forgotten ends its transaction first."""
    if producer_id in truth.forgotten and producer_id is not None:
        if producer_id in truth.open_transactions():
            return False
        truth.producer_epochs[producer_id] += 1
        truth.forgotten.remove(producer_id)
    return True


def _end(model: LogModel, operation: Operation, now_ms: int) -> Iterator[Asked]:
    truth, pid = model.truth, operation["pid"]
    if pid not in truth.open_transactions():
        return
    epoch = truth.producer_epochs[pid]
    kind = Kind.COMMIT if operation["commit"] else Kind.ABORT
    batch = Batch(truth.end, truth.end, truth.leader_epoch, pid, epoch, -1, True, kind)
    fields = {"pid": pid, "epoch": epoch, "commit": operation["commit"]}
    yield _written(model, "end_txn", batch, now_ms, **fields)
    if model.follows:
        yield from high_watermark(model, now_ms)


def _written(model: LogModel, what: str, batch: Batch, now_ms: int, **fields: Any) -> Asked:
    model.truth.append(batch)
    request = {"log": model.partition, "op": what, "leader_epoch": batch.leader_epoch, **fields}
    return Asked(model, request, now_ms, dict(model.config), model.life, batch)


def _at_offset(model: LogModel, operation: Operation, now_ms: int) -> Iterator[Asked]:
    truth, what, part = model.truth, operation["op"], operation.get("part", 0.0)
    if what == "truncate":
        where = truth.boundaries()
        if where:
            offset = where[int(part * len(where))]
            truth.truncate(offset)
            truth.leader_epoch += 1
            model.was_truncated = True
            model.tombstones = {o: t for o, t in model.tombstones.items() if o < offset}
            yield _plain(model, what, now_ms, offset=offset)
    elif what == "delete_records":
        span = truth.high_watermark - model.start
        yield _plain(model, what, now_ms, offset=model.start + int(part * span))
    elif what == "copy":
        yield _plain(
            model, what, now_ms, offset=model.start + int(part * (truth.end - model.start))
        )
    else:
        yield _plain(model, what, now_ms)
        if what == "delete":
            model.exists = False
