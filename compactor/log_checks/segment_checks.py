"""One segment: its log by itself, then its indexes against the log (F-9.4, F-10.2, F-11.6, F-12.6).

A stale index is worse than a missing one: a broker trusts it below the recovery point, and
readers then skip records in silence.
"""

import os
from collections.abc import Callable

import numpy as np

from compactor.log_checks.batch_checks import SegmentCheck, SegmentColumns
from compactor.log_checks.findings import Finding, finding_of
from storage.errors import CorruptFileError
from storage.file_names import (
    INDEX,
    LOG,
    MAX_LOG_BYTES,
    MAX_RELATIVE_OFFSET,
    TIME_INDEX,
    TXN_INDEX,
    Segment,
    file_name,
)
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import offset_index, time_index, txn_index

MISSING = "there is no such file; a broker makes a new one when it starts"


def check_segment(
    directory: str, segment: Segment, next_base_offset: int | None, files: Files = LOCAL
) -> tuple[list[Finding], SegmentColumns]:
    """Everything that can be wrong with a segment; next_base_offset is None for the active one."""
    log_path = os.path.join(directory, file_name(segment.base_offset, LOG))
    # indexes first: a log that grows meanwhile has more batches than they know of, never fewer
    indexes = [
        _IndexFile(os.path.join(directory, file_name(segment.base_offset, suffix)), files)
        for suffix in (INDEX, TIME_INDEX, TXN_INDEX)
    ]
    check = SegmentCheck(log_path, segment.base_offset, files=files)
    columns = check.run()
    findings = check.findings + _check_range(log_path, segment, next_base_offset, columns)
    offsets, times, transactions = indexes
    findings += offsets.check(lambda f: _check_offset_index(f, segment, columns), required=True)
    is_whole = columns.end_position == segment.log_bytes
    findings += times.check(
        lambda f: _check_time_index(f, segment, columns, next_base_offset is not None and is_whole),
        required=True,
    )
    findings += transactions.check(lambda f: _check_txn_index(f, segment), required=False)
    return findings, columns


class _IndexFile:
    """The bytes of an index as they were before the log was read."""

    def __init__(self, path: str, files: Files) -> None:
        self.path = path
        self.data = b""
        self.exists = True
        try:
            self.data = files.read_bytes(path)
        except FileNotFoundError:
            self.exists = False

    def check(self, rule: "Callable[[_IndexFile], list[Finding]]", required: bool) -> list[Finding]:
        if not self.exists:
            return [Finding(self.path, 0, MISSING)] if required else []
        try:
            return rule(self)
        except CorruptFileError as error:
            return [finding_of(error)]


def _check_range(
    path: str, segment: Segment, next_base_offset: int | None, columns: SegmentColumns
) -> list[Finding]:
    findings = []
    if segment.log_bytes > MAX_LOG_BYTES:
        problem = f"{segment.log_bytes} bytes, a broker opens at most {MAX_LOG_BYTES}"
        findings.append(Finding(path, MAX_LOG_BYTES, problem))
    limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1
    if next_base_offset is not None:
        limit = min(limit, next_base_offset)
    beyond = np.flatnonzero(columns.last_offsets >= limit)
    if len(beyond):
        last_offset = columns.last_offsets[beyond[0]]
        problem = f"last offset {last_offset} is not below {limit}, where the segment has to end"
        findings.append(Finding(path, int(columns.positions[beyond[0]]), problem))
    return findings


def _check_offset_index(
    index: _IndexFile, segment: Segment, columns: SegmentColumns
) -> list[Finding]:
    """Each entry leads to the start of a batch, and no batch before that one reaches its offset."""
    entries = offset_index.decode(index.data, index.path)
    offset_index.check(entries, max(segment.log_bytes, columns.end_position), index.path)
    known = entries["position"] < columns.end_position
    positions = entries["position"][known].astype(np.int64)
    offsets = entries["relative_offset"][known].astype(np.int64) + segment.base_offset
    batch = np.searchsorted(columns.positions, positions)
    is_start = columns.positions[np.minimum(batch, len(columns.positions) - 1)] == positions
    before = columns.last_offsets[np.maximum(batch - 1, 0)]
    skips = (batch > 0) & (before >= offsets)
    wrong = np.flatnonzero(~is_start | skips)
    if not len(wrong):
        return []
    at = wrong[0]
    problem = f"entry (offset {offsets[at]}, position {positions[at]}) "
    if not is_start[at]:
        problem += "does not lead to the start of a batch"
    else:
        problem += f"would skip the batch before it, which reaches offset {before[at]}"
    return [Finding(index.path, int(at) * offset_index.ENTRY.itemsize, _with_more(problem, wrong))]


def _check_time_index(
    index: _IndexFile, segment: Segment, columns: SegmentColumns, is_finished: bool
) -> list[Finding]:
    """Check that no batch up to an entry's offset has a later timestamp than the entry.

    Of a closed segment the last entry also has the segment's largest timestamp.
    """
    entries = time_index.decode(index.data, index.path)
    time_index.check(entries, index.path)
    times = entries["timestamp"].astype(np.int64)
    offsets = entries["relative_offset"].astype(np.int64) + segment.base_offset
    latest = np.maximum.accumulate(columns.max_timestamps)
    batches_up_to = np.searchsorted(columns.last_offsets, offsets, side="right")
    if len(latest):
        latest_up_to = np.where(batches_up_to > 0, latest[np.maximum(batches_up_to - 1, 0)], -1)
        wrong = np.flatnonzero(latest_up_to > times)
        if len(wrong):
            at = wrong[0]
            problem = (
                f"entry (timestamp {times[at]}, offset {offsets[at]}) comes after a batch "
                f"with timestamp {latest_up_to[at]}"
            )
            position = int(at) * time_index.ENTRY.itemsize
            return [Finding(index.path, position, _with_more(problem, wrong))]
    largest = int(latest[-1]) if len(latest) else -1
    indexed = int(times[-1]) if len(times) else -1
    if is_finished and indexed != largest:
        problem = f"largest timestamp {indexed}, the batches have {largest}"
        return [Finding(index.path, max(0, len(index.data) - time_index.ENTRY.itemsize), problem)]
    return []


def _check_txn_index(index: _IndexFile, segment: Segment) -> list[Finding]:
    entries = list(txn_index.decode(index.data, index.path))
    txn_index.check(entries, segment.base_offset, index.path)
    return []


def _with_more(problem: str, wrong: "np.typing.NDArray[np.intp]") -> str:
    return problem if len(wrong) == 1 else f"{problem}; {len(wrong) - 1} more like it"
