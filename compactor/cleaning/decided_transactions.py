"""From what the scan left of a log's transactions to what its rewrite goes by.

With the kernels, which a round without transactions does not need here.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from cleaner_jobs.messages import LogPlan, Part
from cleaner_jobs.txn_batches import TxnBatches, read_txn_batches
from cleaner_jobs.work_file import write_checked
from compactor.cleaning.aborted_ranges import TxnIndexOfSegment
from compactor.cleaning.later_markers import later_markers
from compactor.cleaning.stage_values import Decisions, TransactionsOfLog
from compactor.cleaning.transaction_files import map_start, path_of, saved
from compactor.cleaning.transactions import (
    LogTransactions,
    SegmentOfRound,
    decide,
    exact_ranges,
)
from compactor.cleaning.txn_index_check import check_indexes
from storage.formats import txn_index_columns


def decided(
    plan: LogPlan, parts: Sequence[Part], indexes: Sequence[TxnIndexOfSegment], work_dir: str
) -> TransactionsOfLog:
    """Decide about the transactions of a log. parts: all of it, in its order.

    Raise CorruptFileError where an index contradicts the log; WorkFileError; OSError.
    """
    found = _log_transactions(plan, parts, indexes)
    unlisted_aborts = check_indexes(found, plan.path, partial(later_markers, plan))
    decisions = decide(found)
    discardable_files, txn_index_files = _save(plan, decisions, work_dir)
    exact = "" if decisions.agrees else saved(plan, work_dir, "exact", exact_ranges(found))
    return TransactionsOfLog(decisions, unlisted_aborts, discardable_files, txn_index_files, exact)


def _log_transactions(
    plan: LogPlan, parts: Sequence[Part], indexes: Sequence[TxnIndexOfSegment]
) -> LogTransactions:
    ends = {
        (part.group, section.segment): section.last_offset + 1
        for part in parts
        for section in part.sections
    }
    segments = [
        SegmentOfRound(g, segment.base_offset, ends.get((g, s), segment.base_offset))
        for g, group in enumerate(plan.groups)
        for s, segment in enumerate(group.segments)
    ]
    return LogTransactions(
        segments=segments,
        batches=partial(_batches, plan, parts),
        indexes=indexes,
        log_start_offset=plan.log_start_offset,
        first_dirty_offset=plan.first_dirty_offset,
        first_uncleanable_offset=plan.first_uncleanable_offset,
        map_start=map_start(plan),
    )


def _batches(plan: LogPlan, parts: Sequence[Part]) -> Iterator[tuple[int, TxnBatches]]:
    """The rows of one part after another, cut where a segment ends."""
    first_segments = np.cumsum([0, *(len(group.segments) for group in plan.groups)]).tolist()
    for part in parts:
        if part.txn_batches:
            batches = read_txn_batches(part)
            cuts = np.flatnonzero(np.diff(batches["segment"])) + 1
            for run in np.split(batches, cuts):
                yield first_segments[part.group] + int(run["segment"][0]), run


def _save(
    plan: LogPlan, decisions: Decisions, work_dir: str
) -> tuple[dict[int, str], dict[int, str]]:
    """Write which control batches of each group may be discarded, and its new `.txnindex`.

    Returns the names of both, by group; groups in which there is nothing of it have none.
    """
    edges = [group.base_offset for group in plan.groups[1:]]
    of_groups = np.split(decisions.discardable, np.searchsorted(decisions.discardable, edges))
    discardable_files, txn_index_files = {}, {}
    for group, offsets in enumerate(of_groups):
        if len(offsets):
            discardable_files[group] = saved(plan, work_dir, f"discardable-{group}", offsets)
    for group, entries in decisions.txn_indexes.items():
        path = f"{path_of(plan, work_dir, 'group')}-{group}"
        write_checked(path, txn_index_columns.encode_columns(entries))
        txn_index_files[group] = path
    return discardable_files, txn_index_files
