"""Loads every kernel, compiled if need be, with one call each with the types that tasks use.

The first call of a kernel takes a second or more where it must be compiled, and tenths where it is
loaded from the cache. Done before workers are forked, no task waits for it.
"""

import sys
from typing import Any

import numpy as np

from cleaner_jobs import inspection_counters
from cleaner_jobs.kernels import (
    batch_comparison,
    kept_batches,
    key_counts,
    offset_map,
    rebuild,
    record_counts,
    rewrite_runs,
    scan_runs,
    transaction_kernels,
)
from cleaner_jobs.kernels.batch_comparison import EXPECTED_COLUMNS
from cleaner_jobs.tasks import index_check, map_capacity
from cleaner_jobs.txn_batches import TXN_WORDS
from storage.codecs.payload_kernels import max_payload_bytes, tools_of_thread
from storage.codecs.snappy_block import compress_small_block
from storage.formats import batch_columns, batch_kernels, legacy_upgrade, segment_indexes
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.formats.batch_windows import Place
from storage.kernels.kernel import require_keeping
from storage.kernels.xxh3_kernel import digest_between, digests_between


def warm_plain() -> None:
    """Call each kernel on nothing that a round over uncompressed batches needs."""
    rows = np.zeros((1, batch_columns.BATCH_COLUMNS), np.int64)
    window = np.zeros(batch_columns.SLACK_BYTES, np.uint8)
    columns, bounds = _columns(), np.zeros((1, 2), np.int64)
    secret = np.uint64(0), np.uint64(0)
    limits = batch_columns.RecordLimits(0, 0, 0)
    batch_columns.walk_batches(window, 0, 0, -1, rows)
    batch_columns.parse_records(window, bounds[:0], rows[:0], limits, secret, columns, 0)
    batch_kernels.first_wrong_checksum(window, 0, rows[:0], np.zeros(0, np.bool_))
    chunks, place = scan_runs.Chunks(0, 0, 0, 0, window), Place(0, -1)
    parsing = scan_runs.Parsing(limits, secret, np.zeros((0, 4), np.int64))
    scratch = scan_runs.Scratch(window, bounds, np.zeros(1, np.bool_), tools_of_thread())
    part = scan_runs.PartSoFar(0, 0, -1, 0)
    scan_runs.scan_run(chunks, place, part, parsing, scratch, rows, columns, False)
    transaction_kernels.mark_read(rows[:0], np.zeros(0, np.bool_))
    entries, superseded = np.zeros((1, offset_map.ENTRY_WORDS), np.uint64), np.zeros(1, np.uint8)
    none, starts = tuple(column[:0] for column in columns), np.zeros(2, np.uint64)
    offset_map.sum_fingerprints(columns, 0)
    offset_map.pack_part(none, 0, 0, entries, starts)
    offset_map.keep_latest(superseded[:0], 0, entries, starts, np.zeros(16, np.uint64))
    offset_map.merge_latest(entries, 0, np.zeros(16, np.uint64), superseded)
    numbers, sums = np.zeros(1, np.int64), np.zeros((0, offset_map.SUM_COLUMNS), np.uint64)
    offset_map.collect_superseded(
        entries[:0], superseded, (numbers, numbers[:0]), (np.zeros(1, np.uint32), sums)
    )
    ordinals = np.frombuffer(bytes(4), np.uint32)  # as it is read, not to be written
    offset_map.drop_superseded(superseded, ordinals)
    offset_map.count_in_batches(rows[:0], superseded)
    pairs = np.zeros((0, 2), np.int64)
    index_check.first_unordered(pairs, 0)
    index_check.first_unfitting(pairs, 0, 0, rows[:0])
    rewrite_runs.rewrite_plain(
        chunks,
        place,
        superseded,
        rewrite_runs.RunRules(kept_batches.KeptBatches.of(0, ()), 0, -1, np.zeros(1, np.int64)),
        rewrite_runs.RunOutput(
            buffer=window,
            rows=rows,
            actions=np.zeros(1, np.uint8),
            kept_records=np.zeros(1, np.int32),
            spans=bounds,
            places=bounds,
            expected=np.zeros((1, EXPECTED_COLUMNS), np.int64),
        ),
    )
    batch_comparison.sum_heads(window, 0, 0)
    empty = np.zeros(0, np.int64)
    segment_indexes.build_indexes(0, empty, empty, empty, 4096)


def _columns() -> tuple[Any, ...]:
    return (
        np.zeros(1, np.uint64),
        np.zeros(1, np.uint64),
        np.zeros(1, np.int64),
        np.zeros(1, np.uint8),
    )


def warm() -> None:
    """Call each kernel on nothing."""
    warm_plain()
    rows = np.zeros((1, batch_columns.BATCH_COLUMNS), np.int64)
    window = np.zeros(batch_columns.SLACK_BYTES, np.uint8)
    legacy_upgrade.upgrade_messages(window, 0, rows[:0], 0, window, 0)
    legacy_upgrade.first_out_of_order(rows[:0], 0)
    batch_comparison.first_other_row(rows[:0], rows[:0])
    batch_comparison.have_same_bytes(window, window, 0)
    legacy_upgrade.upgrade_wrapper(window, 0, rows[0], window, 0)
    columns = _columns()
    bounds = np.zeros((1, 2), np.int64)
    secret = np.uint64(0), np.uint64(0)
    limits = batch_columns.RecordLimits(0, 0, 0)
    max_payload_bytes(0)
    tools = tools_of_thread()
    legacy_upgrade.upgrade_entries((window, 0, rows[:0]), (0, 0), window, window, tools)
    digests = np.zeros(1, np.uint64)
    digests_between(window, bounds[:0], digests)
    digest_between(window, 0, 0)
    nothing = batch_kernels.PackedBatches(window, 0, rows[:0], np.zeros(0, np.bool_))
    batch_kernels.decompress_batches(nothing, (0, 0), (window, 0), (bounds, digests), tools)
    transaction_kernels.flag_aborted(rows[:0], np.zeros((0, 4), np.int64))
    transaction_kernels.flag_discardable(rows[:0], np.zeros(0, np.int64))
    _warm_transactions()
    entries = np.zeros((1, offset_map.ENTRY_WORDS), np.uint64)
    superseded = np.zeros(1, np.uint8)
    keys = np.zeros((16, 2), np.uint64)
    map_capacity.copy_keys(keys, keys.copy())
    map_capacity.fill_table(columns, 0, keys, 0, 1)
    words = np.zeros((0, TXN_WORDS), np.int64)
    transaction_kernels.note_txn_batches(rows[:0], 0, 0, columns[0], words)
    scan_runs.first_above(window, bounds[:0], rows[:0], 1)
    kept = kept_batches.KeptBatches.of(0, ())
    actions, kept_records = np.zeros(1, np.uint8), np.zeros(1, np.int32)
    kept_batches.decide_batches(rows[:0], superseded, kept, 0, actions, kept_records)
    span = rebuild.RecordSpan(window, 0, 0)
    rebuild.rebuild_records(span, rows[0], superseded, -1, 0, window, 0)
    horizons = np.zeros(1, np.int64)
    choice = rebuild.HorizonDecisions(superseded, horizons, horizons, False)
    rebuild.rebuild_payloads(window, bounds[:0], rows[:0], choice, window, bounds)
    buffers = rebuild.SourceBuffers(window, 0, window, window)
    decisions = rebuild.Decisions(actions, kept_records, superseded)
    rebuild.rewrite_batches(buffers, rows[:0], bounds[:0], decisions, -1, window, bounds)
    expected = np.zeros((1, EXPECTED_COLUMNS), np.int64)
    rewrite_runs.filter_batches(
        nothing,
        choice,
        rewrite_runs.FilterScratch(window, 0, bounds, digests),
        rewrite_runs.FilterOutput(window, bounds, digests, expected),
        tools,
    )
    nobody = rebuild.BatchRows(window, 0, rows[:0])
    of_nobody = rebuild.KeptRecords(window, bounds, kept_records[:0], horizons[:0])
    progress = rebuild.PackProgress(0, 0, -1)
    rebuild.pack_batches(nobody, of_nobody, window, bounds, progress, tools)
    batch_kernels.seal_batches(window, bounds[:0])
    batch_comparison.compare_payloads(
        nobody, (window, bounds[:0]), choice, (window, bounds), expected
    )
    batch_comparison.compare_batches(buffers, rows[:0], decisions, -1, (window, 0), expected)
    chunks, place = scan_runs.Chunks(0, 0, 0, 0, window), Place(0, -1)
    parsing = scan_runs.Parsing(limits, secret, np.zeros((0, 4), np.int64))
    scratch = scan_runs.Scratch(window, bounds, np.zeros(1, np.bool_), tools)
    _warm_counts((window, bounds, rows), columns, entries)
    part = scan_runs.PartSoFar(0, 0, -1, 0)
    counters, sizes = inspection_counters.new_counters(), np.zeros(1, np.uint32)
    counting = record_counts.Counting(
        record_counts.CountLimits(0, 0, 0), inspection_counters.BY_KEY
    )
    counted = record_counts.CountOutput(rows, columns, sizes, counters)
    record_counts.count_run(chunks, place, part, 0, parsing, scratch, counted, counting)
    header, times = np.zeros(BATCH_HEADER_BYTES, np.uint8), rebuild.HeaderTimes(0, 0, False)
    rebuild.write_header(header, 0, window, 0, BATCH_HEADER_BYTES, times, 0)
    compress_small_block(b"warm")


def _warm_counts(batches: Any, columns: Any, entries: Any) -> None:
    """Call the kernels of an inspection."""
    window, bounds, rows = batches
    sizes, slots = np.zeros(1, np.uint32), np.zeros(16, np.uint64)
    records = record_counts.ParsedRecords(columns[2], columns[3], 0)
    counters = inspection_counters.new_counters()
    secret = np.uint64(0), np.uint64(0)
    counted = record_counts.CountLimits(0, 0, 0)
    record_counts.count_records(window, bounds[:0], rows[:0], records, counted, (sizes, counters))
    by = inspection_counters.BY_GROUP, secret
    key_counts.hash_key_parts(window, bounds[:0], rows[:0], by, columns, 0)
    buckets = np.zeros(2, np.int64)
    key_counts.spread_keys(columns, sizes, (0, 0), entries, buckets)
    key_counts.fold_keys(entries, buckets, slots, np.zeros(2, np.uint64))
    keys = np.zeros((1, key_counts.KEY_COLUMNS), np.int64)
    key_counts.merge_keys(entries, 0, slots, keys)
    sums, edges = np.zeros(inspection_counters.KEY_SUMS, np.int64), np.zeros(1, np.int64)
    heavy = np.zeros((1, inspection_counters.HEAVY_COLUMNS), np.int64)
    key_counts.sum_keys(entries, (keys, 0), (edges, edges[:0]), sums, (heavy, heavy.copy()))


def _warm_transactions() -> None:
    """Call the kernels of the driver: from now on they are in the cache."""
    rows, numbers = np.zeros((0, TXN_WORDS), np.int64), np.zeros(0, np.int64)
    four = np.zeros((0, 4), np.int64)  # columns of ranges, entries, tables and what is found
    table, flags = np.zeros((2, transaction_kernels.TABLE_COLUMNS), np.int64), np.zeros(0, np.uint8)
    transaction_kernels.move_table(table, table.copy())
    aborted = transaction_kernels.AbortedTxns(four, numbers, 0)
    transaction_kernels.follow_transactions((rows, 0), aborted, (table, 0), (flags, numbers))
    transaction_kernels.flags_in_ranges(rows, four, flags)
    transaction_kernels.follow_markers((rows, 0), (four, numbers, 0), (table, 0), four)
    transaction_kernels.judge_entries((four, numbers, 0), table, 0, four)
    transaction_kernels.with_open_data(table, numbers)


def main() -> int:
    """Return the exit code: 1 where what is compiled cannot be kept for other processes."""
    require_keeping()
    try:
        warm()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"{where}{error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
