"""Checks the headers of batches after a cleaning: each field follows from the batch before.

A batch of which nothing goes is left as it is, byte for byte; one that loses records, or must get a
delete horizon, is rebuilt; one that loses all and has to stay is emptied. A batch gets a delete
horizon where a tombstone stays in it, or where it is a marker of a transaction that had no data
before it in the log before; from then on it keeps it. All that one cleaning sets in a log are the
same moment: its clock and the topic's `delete.retention.ms`.
Rules: compaction C-8.5, C-11.6 to C-11.12.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from compactor.verification.evidence import MAX_LONG, LogClock
from compactor.verification.reader_kernels import TOMBSTONE, Int64Array
from compactor.verification.reader_log import READERS_BITS, Batches
from compactor.verification.reader_slices import OffsetSlice
from compactor.verification.reader_transactions import BoolArray
from storage.formats.batch_header import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from storage.formats.control_record import ControlType

KEPT_BITS = CODEC_MASK | READERS_BITS  # of the attributes, in a batch that is rebuilt
_SAME_BYTES = ("crc", "size", "attributes", "base_timestamp", "max_timestamp", "records_count")
_HEADER = (
    "attributes",
    "base_timestamp",
    "max_timestamp",
    "records_count",
    "base_offset",
    "last_offset",
)


class BatchPlace(NamedTuple):
    segment: int
    position: int
    offset: int


class BatchProblem(NamedTuple):
    place: BatchPlace
    problem: str


class MarkerBooks:
    """Which markers of the log before have no data at all before them: those get a delete horizon.

    Kafka's own books also say so of some whose `.txnindex` and markers contradict one another.
    """

    def __init__(self) -> None:
        self._data: dict[int, int] = {}  # producer -> last offset of a transactional batch
        self._markers: dict[tuple[int, int], int] = {}  # producer, kind -> last offset

    def read(self, old: OffsetSlice) -> BoolArray:
        """Read what each batch that begins in a slice is as a marker."""
        alone = np.zeros(len(old.batches), np.bool_)
        attributes = old.batches["attributes"]
        for row in np.flatnonzero(attributes & (TRANSACTIONAL | CONTROL)).tolist():
            batch = old.batches[row]
            producer_id, offset = int(batch["producer_id"]), int(batch["base_offset"])
            kind = int(batch["marker"])
            if not attributes[row] & CONTROL:
                self._data[producer_id] = offset
            elif kind in (ControlType.ABORT, ControlType.COMMIT):
                last = self._markers.get((producer_id, kind), -1)
                alone[row] = self._data.get(producer_id, -1) <= last
                self._markers[producer_id, kind] = offset
        return alone


@dataclass(slots=True)
class Horizons:
    """The delete horizons that a cleaning of one log set or passed, and what is wrong with them."""

    clock: LogClock
    set: dict[int, BatchPlace] = field(default_factory=dict)  # the first batch with each
    # the same by the segment before, of batches with tombstones: a cleaning takes whole segments
    by_segment: dict[int, dict[int, BatchPlace]] = field(default_factory=dict)
    missing: BatchPlace | None = None  # the first batch that needs one and has none
    latest_reached_ms: int = -1  # of what is gone for it

    def note_reached(self, gone: Batches) -> None:
        """Note batches of which something is gone since their delete horizon was reached."""
        if len(gone):
            latest = int(gone["base_timestamp"].max())
            self.latest_reached_ms = max(self.latest_reached_ms, latest)

    def problems(self, may_go_on: bool) -> Iterator[BatchProblem]:
        """What no clock explains. may_go_on: some of the log may not have been cleaned."""
        expected = self.clock.horizons
        latest_ms = max(self.set, default=-1)  # of the last cleaning, where there were several
        for horizon_ms, place in self.set.items():
            at = f"offset {place.offset}: delete horizon {horizon_ms}"
            if expected is not None:
                if horizon_ms not in expected and not self._is_possible(horizon_ms):
                    known = ", ".join(map(str, sorted(expected)))
                    told = f"the cleaning set {known}" if known else "no report has a cleaning"
                    yield BatchProblem(place, f"{at}, {told}")
            elif self.clock.is_exact and horizon_ms < self.clock.as_of_ms:
                problem = f"{at} lies before the cleaning, which was at {self.clock.as_of_ms}"
                yield BatchProblem(place, problem)
            elif horizon_ms == latest_ms < self.latest_reached_ms:
                problem = (
                    f"{at} lies before {self.latest_reached_ms}, which the cleaning had reached"
                )
                yield BatchProblem(place, problem)
        yield from self._of_one_segment()
        is_set = bool(self.set) if not expected else min(expected) <= MAX_LONG
        if self.missing is not None and is_set and not may_go_on:
            problem = (
                f"offset {self.missing.offset}: the batch has no delete horizon, but needs one: it "
                "has a tombstone, or is a marker whose transaction has no data any more"
            )
            yield BatchProblem(self.missing, problem)

    @property
    def unreported(self) -> list[int]:
        """Horizons that no report has, though they are possible."""
        return [horizon_ms for horizon_ms in self.set if self.is_unreported(horizon_ms)]

    def is_unreported(self, horizon_ms: int) -> bool:
        """Whether no report has it, and a broker or a run that was killed may have set it."""
        if not self.clock.evidence.has_reports or horizon_ms in (self.clock.horizons or ()):
            return False
        return self._is_possible(horizon_ms)

    def _is_possible(self, horizon_ms: int) -> bool:
        evidence = self.clock.evidence
        now_ms = evidence.now_ms
        return now_ms is not None and evidence.allows_horizon(horizon_ms, now_ms)

    def _of_one_segment(self) -> Iterator[BatchProblem]:
        for horizons in self.by_segment.values():
            first, *others = horizons
            for horizon_ms in others:
                place = horizons[horizon_ms]
                yield BatchProblem(
                    place,
                    f"offset {place.offset}: delete horizon {horizon_ms}, another batch of the "
                    f"same segment has {first}; a cleaning sets the same in a segment",
                )


class _Kept(NamedTuple):
    """What the records of each batch that begins in a slice show."""

    counts: Int64Array
    first_timestamp: Int64Array
    latest_timestamp: Int64Array
    first_offset: Int64Array
    last_offset: Int64Array
    has_null_value: BoolArray


class HeaderCheck:
    """Checks the batch headers of one log against those before, a slice at a time."""

    def __init__(self, clock: LogClock) -> None:
        self.horizons = Horizons(clock)
        self._books = MarkerBooks()

    def check(
        self, old: OffsetSlice, new: OffsetSlice, data_left: Int64Array
    ) -> Iterator[BatchProblem]:
        """Yield what is wrong with the batches that begin in a slice.

        Batches that are new, or whose offsets or producers differ, are reported elsewhere.

        data_left: as DataLeft gives it.
        """
        must = self._books.read(old)
        is_marker = np.isin(old.batches["marker"], (ControlType.ABORT, ControlType.COMMIT))
        may = is_marker & (data_left < 0)
        now = new.batches
        if not len(now) or not len(old.all_batches):
            return
        kept = _kept(new)
        was, is_known, is_marker_of, needs_as_marker = _matched(old, now, may, must)
        is_one_round = self.horizons.clock.evidence.is_one_round
        had = (was["attributes"] & DELETE_HORIZON != 0) & (was["magic"] == MAGIC)
        may_be_set = ~had & (kept.has_null_value | is_marker_of)
        needs = ~had & (kept.has_null_value | needs_as_marker)
        had_null_value = _had_null_value(old, now)
        if not is_one_round:  # an earlier one may have found a tombstone that is gone by now
            may_be_set = may_be_set | (~had & had_null_value)
        expected = _expected(was, now, kept, had)
        if not is_one_round:
            _allow_rounds(expected, was, now, kept)
        is_same = np.logical_and.reduce([was[name] == now[name] for name in _SAME_BYTES])
        is_same &= was["magic"] == MAGIC
        of_tombstones = is_known & kept.has_null_value & (was["magic"] == MAGIC)
        self._note_segments(now, was["segment"], of_tombstones & ~had)
        self._note_horizons(now, is_known & (kept.counts > 0), had, needs)
        sets = (now["attributes"] & DELETE_HORIZON != 0) & ~had
        is_whole = (
            (was["magic"] == MAGIC) & (kept.counts == was["records_count"]) & (kept.counts > 0)
        )
        for row in np.flatnonzero(is_known & ~is_same).tolist():
            problem = _difference(expected[row], now[row])
            horizon_ms = int(now["base_timestamp"][row])
            is_set = sets[row] and not may_be_set[row]
            if is_set and had_null_value[row] and self.horizons.is_unreported(horizon_ms):
                is_set = False  # the same
            if not problem and is_set:
                problem = "has a delete horizon, but no tombstone, and is no marker that needs one"
            if not problem and is_whole[row] and not sets[row] and not needs[row]:
                problem = "was rebuilt, though nothing in it had to change"
            if problem:
                place = _place(now[row])
                yield BatchProblem(place, f"offset {place.offset}: the batch {problem}")

    def _note_segments(self, now: Batches, segments: Int64Array, is_set: BoolArray) -> None:
        is_set = is_set & (now["attributes"] & DELETE_HORIZON != 0)
        for row in np.flatnonzero(is_set).tolist():
            horizons = self.horizons.by_segment.setdefault(int(segments[row]), {})
            horizons.setdefault(int(now["base_timestamp"][row]), _place(now[row]))

    def _note_horizons(
        self, now: Batches, is_known: BoolArray, had: BoolArray, needs: BoolArray
    ) -> None:
        has = now["attributes"] & DELETE_HORIZON != 0
        values, first = np.unique(now["base_timestamp"][is_known & has & ~had], return_index=True)
        rows = np.flatnonzero(is_known & has & ~had)[first]
        for value, row in zip(values.tolist(), rows.tolist(), strict=True):
            self.horizons.set.setdefault(value, _place(now[row]))
        missing = np.flatnonzero(is_known & ~has & needs)
        if len(missing) and self.horizons.missing is None:
            self.horizons.missing = _place(now[missing[0]])


def _matched(
    old: OffsetSlice, now: Batches, may: BoolArray, must: BoolArray
) -> tuple[Batches, BoolArray, BoolArray, BoolArray]:
    """Match each batch with the one before, if any, and with what it is as a marker.

    A batch of v2 is what became of the one with its offset; or of the legacy wrapper around it.
    """
    same = np.searchsorted(old.batches["base_offset"], now["base_offset"])
    same = np.minimum(same, max(len(old.batches) - 1, 0))
    around = np.searchsorted(old.all_batches["base_offset"], now["base_offset"], side="right") - 1
    around = np.maximum(around, 0)
    was = old.all_batches[around]
    is_known = (was["magic"] != MAGIC) & (was["last_offset"] >= now["last_offset"])
    is_known &= was["base_offset"] <= now["base_offset"]
    none = np.zeros(len(now), np.bool_)
    if not len(old.batches):
        return was, is_known & (now["magic"] == MAGIC), none, none
    is_same = (old.batches["base_offset"][same] == now["base_offset"]) & (
        old.batches["magic"][same] == MAGIC
    )
    was = np.where(is_same, old.batches[same], was)
    is_known = np.where(is_same, was["last_offset"] == now["last_offset"], is_known)
    is_known &= now["magic"] == MAGIC
    return was, is_known, may[same] & is_same, must[same] & is_same


def _had_null_value(old: OffsetSlice, now: Batches) -> BoolArray:
    """Return of each batch of v2 whether the one before with its offset had a tombstone."""
    if not len(old.batches):
        return np.zeros(len(now), np.bool_)
    same = np.searchsorted(old.batches["base_offset"], now["base_offset"])
    same = np.minimum(same, len(old.batches) - 1)
    is_same = old.batches["base_offset"][same] == now["base_offset"]
    had: BoolArray = is_same & _kept(old).has_null_value[same]
    return had


def _allow_rounds(expected: Batches, was: Batches, now: Batches, kept: _Kept) -> None:
    """What the batch of an earlier round may have had, and the last one has left as it was."""
    is_empty = kept.counts == 0
    expected["max_timestamp"][is_empty] = now["max_timestamp"][is_empty]
    spans = (was["magic"] != MAGIC) & ~is_empty
    spans &= (now["base_offset"] <= kept.first_offset) & (now["last_offset"] >= kept.last_offset)
    for name in ("base_offset", "last_offset"):
        expected[name][spans] = now[name][spans]


def _kept(one: OffsetSlice) -> _Kept:
    """Records of batches that begin before the slice are left out: such a batch is not sound."""
    rows = one.records.batches - one.first
    own = (rows >= 0) & (rows < len(one.batches))
    records, rows = one.records.of(own), rows[own]
    count = np.bincount(rows, minlength=len(one.batches)).astype(np.int64)
    first = np.minimum(np.cumsum(count) - count, max(len(rows) - 1, 0))
    latest = np.full(len(count), NO_TIMESTAMP, np.int64)
    np.maximum.at(latest, rows, records.timestamps)
    null_values = rows[records.kinds & TOMBSTONE != 0]
    has_null_value = np.bincount(null_values, minlength=len(count)) > 0
    last = np.minimum(first + np.maximum(count - 1, 0), max(len(rows) - 1, 0))
    nothing = np.full(len(count), NO_TIMESTAMP, np.int64)
    return _Kept(
        counts=count,
        first_timestamp=records.timestamps[first] if len(rows) else nothing,
        latest_timestamp=latest,
        first_offset=records.offsets[first] if len(rows) else nothing,
        last_offset=records.offsets[last] if len(rows) else nothing,
        has_null_value=has_null_value,
    )


def _expected(was: Batches, now: Batches, kept: _Kept, had: BoolArray) -> Batches:
    """The headers of batches that are rebuilt or emptied; a horizon that is set stands as it is."""
    is_empty, stamped = kept.counts == 0, was["attributes"] & LOG_APPEND_TIME != 0
    keeps_horizon = had & (was["base_timestamp"] >= 0) & ~is_empty
    sets_horizon = ~had & (now["attributes"] & DELETE_HORIZON != 0) & ~is_empty
    expected = now.copy()
    bits = np.where(is_empty, READERS_BITS, KEPT_BITS)
    expected["attributes"] = was["attributes"] & bits
    expected["attributes"] |= np.where(keeps_horizon | sets_horizon, DELETE_HORIZON, 0)
    expected["max_timestamp"] = np.where(
        is_empty | stamped, was["max_timestamp"], kept.latest_timestamp
    )
    expected["base_timestamp"] = np.select(
        [is_empty, keeps_horizon, sets_horizon],
        [NO_TIMESTAMP, was["base_timestamp"], now["base_timestamp"]],
        kept.first_timestamp,
    )
    expected["records_count"] = kept.counts
    legacy = (was["magic"] != MAGIC) & ~is_empty
    expected["base_offset"] = np.where(legacy, kept.first_offset, was["base_offset"])
    expected["last_offset"] = np.where(legacy, kept.last_offset, was["last_offset"])
    return expected


def _difference(expected: np.void, actual: np.void) -> str:
    """The first field of a header that is not what it has to be; "" if all are."""
    if expected["attributes"] & DELETE_HORIZON:
        horizon_ms = expected["base_timestamp"]
        if not actual["attributes"] & DELETE_HORIZON:
            return f"has lost its delete horizon {horizon_ms}"
        if actual["base_timestamp"] != horizon_ms:
            return f"has delete horizon {actual['base_timestamp']}, before {horizon_ms}"
    for name in _HEADER:
        if expected[name] != actual[name]:
            return f"has {name.replace('_', ' ')} {actual[name]}, expected {expected[name]}"
    return ""


def _place(batch: np.void) -> BatchPlace:
    return BatchPlace(int(batch["segment"]), int(batch["position"]), int(batch["base_offset"]))
