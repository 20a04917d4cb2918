"""What the driver reads of a log's transactions and what it leaves for the tasks of the round."""

import os
from collections.abc import Collection, Sequence

import numpy as np

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.task_values import Part
from cleaner_jobs.tasks.txn_batches import (
    TXN_BATCH,
    Int64Array,
    TxnBatches,
    read_txn_batches,
    save_array,
)
from cleaner_jobs.work_file import write_checked
from compactor.cleaning.transactions import (
    Decisions,
    LogTransactions,
    SegmentOfRound,
    TxnIndexOfSegment,
    expected_ranges,
)
from compactor.cleaning.txn_index_check import Marker
from storage.file_names import INDEX, LOG, TXN_INDEX, file_name
from storage.files import filesystem
from storage.formats import offset_index, txn_index
from storage.formats.control_record import ControlType
from storage.log.log_dir import list_partition
from storage.log.producer_state import read_marker
from storage.log.segment_reader import read_batch_headers
from storage.log.segment_recovery import rebuilt_indexes


def read_indexes(plan: LogPlan) -> list[TxnIndexOfSegment]:
    """The transaction indexes of a log. Raise CorruptFileError where one is not sound."""
    indexes = [TxnIndexOfSegment(*rebuilt) for rebuilt in plan.rebuilt_txn_indexes]
    for base_offset in plan.txn_index_base_offsets:
        path = os.path.join(plan.path, file_name(base_offset, TXN_INDEX))
        entries = txn_index.read(path)
        txn_index.check(entries, base_offset, path)
        indexes.append(TxnIndexOfSegment(base_offset, entries))
    return sorted(indexes, key=lambda index: index.base_offset)


def save_expected(plan: LogPlan, indexes: Sequence[TxnIndexOfSegment], work_dir: str) -> str:
    """Write for the scan what the indexes say is aborted; "" where they say nothing."""
    return _saved(plan, work_dir, "expected", expected_ranges(indexes, plan.log_start_offset))


def log_transactions(
    plan: LogPlan, parts: Sequence[Part], indexes: Sequence[TxnIndexOfSegment]
) -> LogTransactions:
    """Put together what `transactions.decide` asks for. parts: all of the log, in its order."""
    found: dict[tuple[int, int], list[TxnBatches]] = {}
    ends: dict[tuple[int, int], int] = {}
    for part in parts:
        for section in part.sections:
            ends[part.group, section.segment] = section.last_offset + 1
        if part.txn_batches:
            batches = read_txn_batches(part)
            for number in np.unique(batches["segment"]).tolist():
                own = batches[batches["segment"] == number]
                found.setdefault((part.group, number), []).append(own)
    nothing = np.empty(0, TXN_BATCH)
    segments = [
        SegmentOfRound(
            g,
            segment.base_offset,
            ends.get((g, s), segment.base_offset),
            np.concatenate(found.get((g, s), [nothing])),
        )
        for g, group in enumerate(plan.groups)
        for s, segment in enumerate(group.segments)
    ]
    return LogTransactions(
        segments=segments,
        indexes=indexes,
        log_start_offset=plan.log_start_offset,
        first_dirty_offset=plan.first_dirty_offset,
        first_uncleanable_offset=plan.first_uncleanable_offset,
        map_start=map_start(plan),
    )


def later_markers(plan: LogPlan, producer_ids: Collection[int]) -> dict[int, Marker]:
    """The first marker of each of some producers behind the segments of the round.

    Reads batch headers until each has one: transactions that are open where a round ends are short.
    """
    partition = list_partition(plan.path, plan.topic, plan.partition)
    first = max(s.base_offset for group in plan.groups for s in group.segments) + 1
    found: dict[int, Marker] = {}
    for segment in partition.segments:
        if segment.base_offset < first or len(found) == len(producer_ids):
            continue
        log_path = os.path.join(plan.path, file_name(segment.base_offset, LOG))
        for position, header in read_batch_headers(log_path, files=partition.access):
            producer_id = header.producer_id
            if not (header.is_control and header.records_count and producer_id in producer_ids):
                continue
            kind = read_marker(header, log_path, position, partition.access)[0]
            found.setdefault(producer_id, Marker(header.base_offset, kind is ControlType.ABORT))
            if len(found) == len(producer_ids):
                break
    return found


def map_start(plan: LogPlan) -> tuple[int, int]:
    """Number of the segment and position in it where the map of the round begins (C-7.5).

    By the index as it stands on disk, since Kafka goes by it (C-7.11), or as it would rebuild it.
    """
    offset = plan.first_dirty_offset
    segments = [segment for group in plan.groups for segment in group.segments]
    number = max((i for i, s in enumerate(segments) if s.base_offset <= offset), default=0)
    base_offset = segments[number].base_offset
    if base_offset >= offset or not segments[number].index_bytes:
        return number, 0
    path = os.path.join(plan.path, file_name(base_offset, INDEX))
    if filesystem.exists(path):
        entries = offset_index.read(path)
    else:
        log_path = os.path.join(plan.path, file_name(base_offset, LOG))
        log_bytes, interval_bytes = segments[number].log_bytes, plan.index_interval_bytes
        rebuilt = rebuilt_indexes(log_path, base_offset, log_bytes, interval_bytes)
        entries = offset_index.decode(rebuilt.offset_index, path)
    return number, offset_index.search(entries, base_offset, offset).position


def save_decisions(
    plan: LogPlan, decisions: Decisions, work_dir: str
) -> tuple[str, dict[int, str]]:
    """Write which control batches may be discarded, and the new `.txnindex` of each group.

    Returns the names of the former ("" where none may) and of the latter, by group.
    """
    discardable_file = _saved(plan, work_dir, "discardable", decisions.discardable)
    txn_index_files = {}
    for group, entries in decisions.txn_indexes.items():
        path = f"{_path(plan, work_dir, 'group')}-{group}"
        write_checked(path, b"".join(map(txn_index.encode, entries)))
        txn_index_files[group] = path
    return discardable_file, txn_index_files


def save_exact(plan: LogPlan, decisions: Decisions, work_dir: str) -> str:
    """Write for another scan what is aborted, batch by batch; "" where nothing is."""
    return _saved(plan, work_dir, "exact", decisions.aborted_ranges)


def _saved(plan: LogPlan, work_dir: str, kind: str, array: Int64Array) -> str:
    if not len(array):
        return ""
    path = _path(plan, work_dir, kind)
    save_array(path, array)
    return path


def _path(plan: LogPlan, work_dir: str, kind: str) -> str:
    """A partial round decides twice: over the whole range, then up to where its map ends."""
    name = f"{plan.log_id}-{plan.end_offset}-{kind}"
    return os.path.join(work_dir, "transactions", name)
