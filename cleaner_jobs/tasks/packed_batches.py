"""Rebuilds compressed and legacy batches: filters and compresses many at a time.

The bytes of the payload are those of Kafka's own codec libraries at their default levels, whatever
level the batch came with (compaction C-11.11 d). What the kernels do not compress goes through
Python, one batch at a time.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_comparison import DIFFERENCES, EXPECTED_COLUMNS
from cleaner_jobs.kernels.kept_batches import REBUILD_WITH_HORIZON
from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_RECORD,
    KEPT_END,
    KEPT_START,
    NO_CODEC,
    NOT_PACKED,
    NOTHING_READY,
    REFUSED,
    RESULT_COLUMNS,
    BatchRows,
    HorizonDecisions,
    KeptRecords,
    PackProgress,
    pack_batches,
    rebuild_payloads,
)
from cleaner_jobs.kernels.rewrite_runs import (
    CHANGED,
    DIFFERENT,
    FilterOutput,
    FilterScratch,
    filter_batches,
)
from cleaner_jobs.tasks.rewrite_check import (
    WHAT_WAS_DECOMPRESSED,
    Decided,
    check_payloads,
    miswritten,
)
from cleaner_jobs.tasks.window_reader import digests_of, is_read, payloads
from storage.codecs.compression import Codec, compress
from storage.codecs.payload_kernels import max_payload_bytes, tools_of_thread
from storage.formats.batch_columns import (
    ATTRIBUTES,
    RECORDS_COUNT,
    SLACK_BYTES,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK
from storage.formats.batch_kernels import (
    PackedBatches,
    UInt64Array,
)
from storage.formats.batch_windows import NO_DIGESTS, NO_RECORDS, Buffers, Payloads, Window
from storage.formats.legacy_upgrade import has_legacy

PACKED_BYTES = 4 << 20  # rebuilt at once, unless a single batch holds more
FILTERED_BYTES = 512 << 10  # decompressed at once by filter_batches: the cache of one core holds it
KEPT_BYTES = 4 << 20  # of what is kept of many batches


class PackedRun(NamedTuple):
    """What became of consecutive ones of the batches that were asked for."""

    numbers: NDArray[np.intp]  # of the batches in the window
    buffer: ByteArray  # the next run overwrites it
    places: Int64Array  # (batches, 2): where each stands in buffer, whole; or NOT_PACKED
    is_compressed: NDArray[np.bool_]
    refused: int  # how many, by Kafka's builder (C-11.14)
    digests: UInt64Array  # of the records of those that are compressed, before they were


class _Filtered(NamedTuple):
    """What is kept of a run of batches, uncompressed."""

    window: Window
    rows: Int64Array
    kept_records: NDArray[np.int32]
    horizons_ms: Int64Array
    plain: ByteArray
    results: Int64Array  # of rebuild_payloads
    digests: UInt64Array

    def part(self, first: int, end: int | None = None) -> "_Filtered":
        """Return the same of some of the batches."""
        return self._replace(
            rows=self.rows[first:end],
            kept_records=self.kept_records[first:end],
            horizons_ms=self.horizons_ms[first:end],
            results=self.results[first:end],
            digests=self.digests[first:end],
        )


class _Choice(NamedTuple):
    """Batches of a window that are to be rebuilt, and what is decided of them."""

    picked: Window  # with their rows alone
    numbers: NDArray[np.intp]  # in the window
    horizons_ms: Int64Array  # that each is to be given, or -1
    decided: Decided

    def decisions(self, count: int) -> HorizonDecisions:
        """Return what is decided of the first of them."""
        return HorizonDecisions(
            states=self.decided.states,
            first_records=self.decided.ordinals[self.numbers[:count]],
            horizons_ms=self.horizons_ms[:count],
            gives_horizons=self.decided.horizon_ms >= 0,
        )

    def after(self, count: int) -> "_Choice":
        """Return the choice without its first batches."""
        return self._replace(
            picked=self.picked._replace(rows=self.picked.rows[count:]),
            numbers=self.numbers[count:],
            horizons_ms=self.horizons_ms[count:],
        )


def rebuild_packed(
    window: Window, numbers: NDArray[np.intp], decided: Decided, buffers: Buffers
) -> Iterator[PackedRun]:
    """Yield what becomes of the batches of these numbers, in order.

    What is expected in their headers is filled in before. Raise MiswrittenError where the records
    that are to be compressed are not those of the source.
    """
    given = decided.actions[numbers] == REBUILD_WITH_HORIZON
    horizons_ms = np.where(given, decided.horizon_ms, -1).astype(np.int64)
    choice = _Choice(window._replace(rows=window.rows[numbers]), numbers, horizons_ms, decided)
    while len(choice.numbers):
        filtered = _filter_many(choice, buffers)
        if not len(filtered.rows):
            filtered = _filter_run(choice, buffers)
        chosen, done = choice.numbers[: len(filtered.rows)], 0
        while done < len(chosen):
            left = filtered.part(done)
            buffer, places = _pack(left, buffers)
            end = done + len(places)
            yield _packed_run(left.part(0, len(places)), chosen[done:end], buffer, places)
            done = end
        choice = choice.after(done)


def _filter_many(choice: _Choice, buffers: Buffers) -> _Filtered:
    """Filter first batches, as many as kernels take and there is room for; perhaps none."""
    window, numbers, _, decided = choice
    rows = window.rows
    if has_legacy(rows):
        return _filtered(choice, 0, NO_RECORDS, np.empty((0, RESULT_COLUMNS), np.int64), NO_DIGESTS)
    count = len(rows)
    results = buffers.array("rebuilt", count, np.int64, RESULT_COLUMNS)[:count]
    digests = buffers.array("kept digests", count, np.uint64)[:count]
    expected = buffers.array("expected of packed", count, np.int64, EXPECTED_COLUMNS)[:count]
    expected[:] = 0
    plain = buffers.array("kept of many", KEPT_BYTES)[:KEPT_BYTES]
    payload = buffers.array("payload of many", FILTERED_BYTES + SLACK_BYTES)
    bounds = buffers.array("bounds of many", count, np.int64, 2)[:count]
    read_digests = buffers.array("digests of many", count, np.uint64)[:count]
    done, why, difference = filter_batches(
        PackedBatches(window.buffer, window.file_position, rows, is_read(rows)),
        choice.decisions(count),
        FilterScratch(payload, FILTERED_BYTES, bounds, read_digests),
        FilterOutput(plain, results, digests, expected),
        tools_of_thread(),
    )
    if why == DIFFERENT:
        raise miswritten(window, done, DIFFERENCES[difference])
    if why == CHANGED:
        raise miswritten(window, done, WHAT_WAS_DECOMPRESSED)
    decided.expected[numbers[:done]] = expected[:done]
    return _filtered(choice, done, plain, results, digests)


def _filter_run(choice: _Choice, buffers: Buffers) -> _Filtered:
    """Filter one batch at least, step by step."""
    window, numbers, _, decided = choice
    run = next(payloads(window, buffers, digested=True))
    count = run.end
    decisions = choice.decisions(count)
    plain, results = _filter(run, window.rows[:count], decisions, buffers)
    digests = digests_of(plain, results[:, : KEPT_END + 1])
    decided.expected[numbers[:count]] = check_payloads(window, run, decisions, (plain, results))
    return _filtered(choice, count, plain, results, digests)


def _filtered(
    choice: _Choice, count: int, plain: ByteArray, results: Int64Array, digests: UInt64Array
) -> _Filtered:
    return _Filtered(
        window=choice.picked,
        rows=choice.picked.rows[:count],
        kept_records=choice.decided.kept_records[choice.numbers[:count]],
        horizons_ms=choice.horizons_ms[:count],
        plain=plain,
        results=results[:count],
        digests=digests[:count],
    )


def _packed_run(
    filtered: _Filtered, numbers: NDArray[np.intp], buffer: ByteArray, places: Int64Array
) -> PackedRun:
    is_packed = places[:, 0] != NOT_PACKED
    is_compressed = is_packed & (filtered.kept_records > 0)
    return PackedRun(
        numbers=numbers,
        buffer=buffer,
        places=places,
        is_compressed=is_compressed,
        refused=int(np.count_nonzero(filtered.results[is_compressed, REFUSED])),
        digests=filtered.digests[is_compressed],
    )


def _pack(filtered: _Filtered, buffers: Buffers) -> tuple[ByteArray, Int64Array]:
    """Pack batches from the first on, as many as there is room for: where, and their places."""
    results = filtered.results
    first_bytes = int(results[0, KEPT_END] - results[0, KEPT_START])
    room = BATCH_HEADER_BYTES + max_payload_bytes(first_bytes)
    out = buffers.array("packed", max(PACKED_BYTES, room))
    places = buffers.array("packed places", len(filtered.rows), np.int64, 2)[: len(filtered.rows)]
    window = filtered.window
    done, at, ready = 0, 0, NOTHING_READY
    while True:
        done, at, why = pack_batches(
            BatchRows(window.buffer, window.file_position, filtered.rows),
            KeptRecords(filtered.plain, results, filtered.kept_records, filtered.horizons_ms),
            out,
            places,
            PackProgress(done, at, ready),
            tools_of_thread(),
        )
        if why != NO_CODEC:
            return out, places[:done]
        codec = Codec(int(filtered.rows[done, ATTRIBUTES]) & CODEC_MASK)
        start, end = results[done, : KEPT_END + 1].tolist()
        payload = compress(codec, filtered.plain.data[start:end])
        payload_at, ready = at + BATCH_HEADER_BYTES, len(payload)
        out.data[payload_at : payload_at + ready] = payload


def _filter(
    run: Payloads,
    rows: Int64Array,
    decisions: HorizonDecisions,
    buffers: Buffers,
) -> tuple[ByteArray, Int64Array]:
    """Return the kept records of a run of batches, and the results of rebuild_payloads."""
    count = run.end - run.first
    room = int(run.bounds[:, 1].max()) + SLACK_BYTES
    room += GROWTH_BYTES_PER_RECORD * int(rows[:, RECORDS_COUNT].sum())
    plain = buffers.array("plain", room)
    results = buffers.array("rebuilt", count, np.int64, RESULT_COLUMNS)[:count]
    rebuild_payloads(run.buffer, run.bounds, rows, decisions, plain, results)
    return plain, results
