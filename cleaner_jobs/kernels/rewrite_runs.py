"""Kernels that rewrite runs of batches of format v2, some at a time, while the cache holds them.

`rewrite_plain` does all steps for plain batches, a chunk of a file at a time. `filter_batches`
decompresses batches and filters their records, so that others can compress them. Each step is a
kernel of its own, called here; what one of them does not take is left to `tasks.batch_rewriter` and
`tasks.packed_batches`, which go through it step by step and say what is wrong.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_comparison import (
    SAME,
    compare_batches,
    compare_payloads,
    sum_heads,
)
from cleaner_jobs.kernels.kept_batches import COPY, DROP, Int32Array, KeptBatches, decide_batches
from cleaner_jobs.kernels.rebuild import (
    GROWTH_BYTES_PER_RECORD,
    KEPT_END,
    KEPT_START,
    BatchRows,
    Decisions,
    HorizonDecisions,
    SourceBuffers,
    rebuild_payloads,
    rewrite_batches,
)
from cleaner_jobs.kernels.scan_runs import (
    LEFT,
    NO_MORE,
    NOT_TAKEN,
    Chunks,
    frame_run,
    plausible,
)
from cleaner_jobs.kernels.transaction_kernels import flag_discardable
from storage.formats.batch_columns import LAST_OFFSET, SLACK_BYTES, ByteArray, Int64Array
from storage.formats.batch_kernels import (
    PackedBatches,
    decompress_batches,
    first_wrong_checksum,
    seal_batches,
)
from storage.formats.batch_windows import Place
from storage.kernels.kernel import allocating_kernel, kernel
from storage.kernels.xxh3_kernel import digest_between

ALL_DONE, NO_ROOM, NOT_FILTERED, DIFFERENT, CHANGED = range(5)


class RunRules(NamedTuple):
    """What decides what becomes of batches."""

    kept_batches: KeptBatches
    now_ms: int
    horizon_ms: int  # of this round
    discardable: Int64Array  # base offsets as in flag_discardable


class RunOutput(NamedTuple):
    """What a kernel writes; the arrays of batches have equally many rows, filled from the top."""

    buffer: ByteArray  # written from its start
    rows: Int64Array
    actions: ByteArray
    kept_records: Int32Array
    spans: Int64Array  # to work with, as are the following
    places: Int64Array
    expected: Int64Array


@allocating_kernel
def rewrite_plain(
    source: Chunks, at: Place, states: ByteArray, rules: RunRules, out: RunOutput
) -> tuple[int, int, np.uint64, int, int, int]:
    """Write what becomes of a run of plain batches, and check it against them meanwhile.

    states: of the records from there on, perhaps more.
    Returns how many batches are done, the bytes written, the source's sum as in sum_heads, why the
    run ended, of how many batches more there are rows, if it is LEFT, and how many of those that
    were rebuilt Kafka's builder refuses.
    """
    _, _, end, _, buffer = source
    position, previous_offset = at
    kept_batches, now_ms, horizon_ms, discardable = rules
    target, rows, actions, kept, spans, places, expected = out
    first: Any = np.int64(0)  # record of the next batch, among the states
    written = 0
    heads = np.uint64(0)
    refused = 0
    batches = 0
    while position < end and batches < rows.shape[0]:
        place = Place(position, previous_offset)
        count, size, held = frame_run(source, place, rows[batches:], False)
        if count == 0 or held > states.shape[0] - first:
            return batches, written, heads, NOT_TAKEN, 0, refused
        if target.shape[0] - written < size + GROWTH_BYTES_PER_RECORD * held + SLACK_BYTES:
            return batches, written, heads, NO_MORE, 0, refused
        its = rows[batches : batches + count]
        flag_discardable(its, discardable)
        its_actions = actions[batches : batches + count]
        its_states = states[first : first + held]
        its_kept = kept[batches : batches + count]
        decide_batches(its, its_states, kept_batches, now_ms, its_actions, its_kept)
        places[:count] = 0
        its_out = target[written:]
        length, fresh, stopped, refused_here = rewrite_batches(
            SourceBuffers(buffer, position, buffer[:0], buffer[:0]),
            its,
            places[:count],
            Decisions(its_actions, its_kept, its_states),
            horizon_ms,
            its_out,
            spans,
        )
        if stopped >= 0:
            return batches, written, heads, NOT_TAKEN, 0, refused
        seal_batches(its_out, spans[:fresh])
        expected[:count] = 0
        _, difference = compare_batches(
            SourceBuffers(buffer, position, buffer[:0], buffer[:0]),
            its,
            Decisions(its_actions, its_kept, its_states),
            horizon_ms,
            (its_out, length),
            expected[:count],
        )
        anew = (its_actions != DROP) & (its_actions != COPY)
        wrong, _ = first_wrong_checksum(buffer, position, its, anew)
        if difference != SAME or wrong >= 0:
            return batches, written, heads, LEFT, count, refused
        heads += sum_heads(buffer, 0, size)[0]
        written += length
        refused += refused_here
        first += held
        batches += count
        position += size
        previous_offset = its[-1, LAST_OFFSET]
    return batches, written, heads, NO_MORE, 0, refused


class FilterScratch(NamedTuple):
    """Memory that `filter_batches` works in."""

    payload: ByteArray  # for what some batches hold
    limit_bytes: int  # how much of it is used at once
    bounds: Int64Array  # of each batch, as is the following
    digests: NDArray[np.uint64]


class FilterOutput(NamedTuple):
    """What `filter_batches` writes: the kept records, and a row for each batch."""

    plain: ByteArray
    results: Int64Array  # see rebuild_payloads
    digests: NDArray[np.uint64]  # of what is kept
    expected: Int64Array  # see compare_payloads


@kernel
def filter_batches(
    source: PackedBatches,
    decisions: HorizonDecisions,
    scratch: FilterScratch,
    out: FilterOutput,
    tools: Any,
) -> tuple[int, int, int]:
    """Decompress batches and put what is kept of them into out, checked against them.

    tools: see payload_kernels.
    Returns how many are done, why it ended, and a detail. ALL_DONE; NO_ROOM in out; NOT_FILTERED:
    the next is to be done step by step; DIFFERENT: what was made of the next is not what was to be
    made, in the detail as in compare_payloads; CHANGED: what it was decompressed to has changed.
    """
    buffer, file_position, rows, is_read = source
    states, first_records, horizons_ms, gives_horizons = decisions
    payload, limit, bounds, digests = scratch
    plain, results, kept_digests, expected = out
    done: Any = np.int64(0)
    at: Any = np.int64(0)
    while done < rows.shape[0]:
        its, its_read = rows[done:], is_read[done:]
        taken, _ = decompress_batches(
            PackedBatches(buffer, file_position, its, its_read),
            (0, 0),
            (payload, limit),
            (bounds, digests),
            tools,
        )
        count, records = plausible(bounds, its, its_read, taken)
        if count == 0:
            return done, NOT_FILTERED, 0
        end = done + count
        room = bounds[count - 1, 1] + GROWTH_BYTES_PER_RECORD * records + SLACK_BYTES
        if room > plain.shape[0] - at:
            return done, NO_ROOM, 0
        target, its_results = plain[at:], results[done:end]
        choice = HorizonDecisions(
            states, first_records[done:end], horizons_ms[done:end], gives_horizons
        )
        rebuild_payloads(payload, bounds[:count], its[:count], choice, target, its_results)
        behind: Any = np.int64(0)
        for i in range(count):
            start, stop = its_results[i, KEPT_START], its_results[i, KEPT_END]
            kept_digests[done + i] = digest_between(target, start, stop)
            behind = max(behind, stop)
        wrong, difference = compare_payloads(
            BatchRows(buffer, file_position, its[:count]),
            (payload, bounds[:count]),
            choice,
            (target, its_results),
            expected[done:end],
        )
        if difference != SAME:
            return done + wrong, DIFFERENT, difference
        for i in range(count):
            if digest_between(payload, bounds[i, 0], bounds[i, 1]) != digests[i]:
                return done + i, CHANGED, 0
            its_results[i, KEPT_START] += at
            its_results[i, KEPT_END] += at
        at += behind
        done = end
    return done, ALL_DONE, 0
