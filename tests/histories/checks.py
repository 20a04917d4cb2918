"""Holds what Kafka shows of a log against what its history says."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.histories.log_model import LogModel, Tombstone
from tests.histories.truth import Batch, Fate, LogTruth, Record

View = Mapping[str, Any]  # of one log, as java/View.java tells it


class Seen(NamedTuple):
    """A record as Kafka shows it."""

    offset: int
    leader_epoch: int
    timestamp_ms: int
    producer_id: int
    fate: int
    key: str
    value: str | None


class Written(NamedTuple):
    """A record as it was written."""

    record: Record
    batch: Batch
    fate: Fate


def at_start(model: LogModel, view: View) -> Iterator[str]:
    """What is wrong when a broker has opened the log; takes over what it knows from now on."""
    start = view["start"]
    yield from _wrong_start(model, start)
    model.start, model.start_floor = start, start
    model.start_peak = max(model.start_peak, start)
    model.durable_start, model.start_of_brokers = start, min(start, model.start_of_brokers)
    model.retained_ms = 0
    model.truth.forget_producers(start)
    yield from in_between(model, view)


def in_between(model: LogModel, view: View) -> Iterator[str]:
    """What is wrong while it runs, of whatever it has done itself."""
    seen = [Seen(*fields) for fields in view["records"]]
    model.directory = view["dir"]
    if view["end"] != model.truth.end:
        yield f"the log ends at {view['end']}, expected {model.truth.end}"
    if view["topic_id"] != model.topic_id:
        yield f"topic id {view['topic_id']}, expected {model.topic_id}"
    yield from wrong_records(model, seen, view["start"])
    yield from _wrong_epochs(model, view, seen)
    if view["high_watermark"] == model.truth.end:
        first_open = min(model.truth.open_transactions().values(), default=None)
        if view["first_unstable"] != first_open and (first_open or 0) >= view["start"]:
            yield f"first unstable offset {view['first_unstable']}, expected {first_open}"


def wrong_records(model: LogModel, seen: list[Seen], start: int) -> Iterator[str]:
    """seen: in the order of the log, those from `start` on."""
    written = {
        record.offset: Written(record, batch, fate)
        for batch, fate in model.truth.fates()
        for record in batch.records
    }
    last = -1
    for one in seen:
        if one.offset <= last:
            yield f"offset {one.offset} stands behind {last}"
        last = one.offset
        yield from _wrong_record(one, written.get(one.offset))
    there = {one.offset for one in seen}
    for offset, it in written.items():
        uncleanable = it.fate is Fate.OPEN or offset >= model.truth.high_watermark
        if uncleanable and offset >= start and offset not in there:
            yield f"record {offset} is gone, which nobody may clean yet ({it.fate.name})"
    yield from _wrong_keys(model, seen, start)


def _wrong_start(model: LogModel, start: int) -> Iterator[str]:
    if start < model.start_floor:
        yield f"the log start went back to {start}, it was {model.start_floor}"
    for key, it in _latest(model.truth).items():
        value, offset = it.record.value, it.record.offset
        is_young = it.record.timestamp_ms >= model.retained_ms
        if value is not None and model.start <= offset < start and is_young:
            yield f"log start {start}, it was {model.start}: {key!r} at {offset} is lost by it"


def _wrong_record(one: Seen, it: Written | None) -> Iterator[str]:
    if it is None:
        yield f"record {one.offset}, {one.key!r} = {one.value!r}, was never written there"
        return
    record, batch = it.record, it.batch
    expected = Seen(
        record.offset,
        batch.leader_epoch,
        record.timestamp_ms,
        batch.producer_id,
        it.fate,
        record.key,
        record.value,
    )
    if one != expected:
        yield f"{one}, expected {expected}"


def _latest(truth: LogTruth) -> dict[str, Written]:
    """The last committed record of each key."""
    latest: dict[str, Written] = {}
    for batch, fate in truth.fates():
        if fate is Fate.COMMITTED:
            for record in reversed(batch.records):
                latest.setdefault(record.key, Written(record, batch, fate))
    return latest


def _wrong_keys(model: LogModel, seen: list[Seen], start: int) -> Iterator[str]:
    shown = {one.key: one for one in seen if one.fate == Fate.COMMITTED}
    latest = _latest(model.truth)
    for key, it in latest.items():
        record, one = it.record, shown.get(key)
        if record.offset < start:
            is_known = start >= model.start_peak
        else:
            is_known = record.offset >= model.start_peak or start >= model.start_peak
        if not is_known:
            continue
        if one is None:
            if record.offset >= start:
                yield from _gone(key, record, model.tombstones.get(record.offset))
        elif one.offset != record.offset:
            what = "was deleted" if record.value is None else f"is {record.value!r}"
            yield f"{key!r} is {one.value!r} of {one.offset}: it {what} at {record.offset}"


def _gone(key: str, record: Record, tombstone: Tombstone | None) -> Iterator[str]:
    if record.value is not None:
        yield f"{key!r} is gone: its latest value is that of {record.offset}, {record.value!r}"
    elif tombstone is None or not tombstone.may_be_gone:
        yield f"the tombstone {record.offset} of {key!r} is gone too early: {tombstone}"


def _wrong_epochs(model: LogModel, view: View, seen: Sequence[Seen]) -> Iterator[str]:
    """Of what is there: a copy in another directory knows no epochs that compaction has emptied."""
    epochs, starts = [e for e, _ in view["epochs"]], [s for _, s in view["epochs"]]
    if epochs != sorted(set(epochs)) or starts != sorted(starts):
        yield f"leader epochs {view['epochs']}"
    for one in seen:
        at = bisect_right(starts, one.offset) - 1
        found = epochs[at] if at >= 0 else None
        if one.offset >= model.start_peak and found != one.leader_epoch:
            yield f"leader epoch of {one.offset}: {found}, expected {one.leader_epoch}"
            return
