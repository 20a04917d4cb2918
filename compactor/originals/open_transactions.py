"""Whether brokers still know the transactions that were open in what a run has deleted.

A broker that starts where nothing is left of a transaction may forget it. An abort marker that it
writes then gets no entry in a `.txnindex`, and records that came back would pass for committed.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compactor.originals.kept_run import KeptLog
from compactor.originals.log_states import ChangedSinceError, logs_of
from storage.file_names import LOG, SNAPSHOT, TXN_INDEX, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import producer_snapshot, txn_index
from storage.formats.control_record import ControlType
from storage.formats.record_batch import BatchHeader
from storage.log.log_dir import PartitionListing
from storage.log.segment_reader import read_batch_headers, read_marker


class _Found(NamedTuple):
    path: str  # of a .log file
    position: int
    header: BatchHeader


def check_transactions(log: KeptLog, listing: PartitionListing) -> None:
    """Raise ChangedSinceError where one of them is forgotten, CorruptFileError or OSError.

    One is known that the newest snapshot has as open, that was committed, or whose abortion stands
    in a `.txnindex`.
    """
    deleted = [
        log.file(step, mark.name)
        for step in log.steps
        if step.deleted_up_to is not None
        for mark in logs_of(step.originals)
    ]
    open_since = _open_at_end(deleted)
    if not open_since:
        return
    known = _open_in_snapshot(listing) | {
        (entry.producer_id, entry.first_offset)
        for segment in listing.segments
        for entry in txn_index.read(_file(listing, segment.base_offset, TXN_INDEX), listing.access)
    }
    unknown = {key for key in open_since.items() if key not in known}
    live = [_file(listing, segment.base_offset, LOG) for segment in listing.segments]
    for producer_id, first_offset in sorted(unknown):
        if not _is_committed(producer_id, live, listing.access):
            raise ChangedSinceError(
                f"a broker has forgotten the transaction of producer {producer_id} that began at "
                f"offset {first_offset}, in what the run deleted: its records would come back as "
                "if they were committed"
            )


def _open_at_end(paths: Sequence[str]) -> dict[int, int]:
    """First offsets of the transactions that do not end in these files, by producer."""
    open_since: dict[int, int] = {}
    for _, _, header in _transactional(paths, LOCAL):
        if header.is_control:
            open_since.pop(header.producer_id, None)
        else:
            open_since.setdefault(header.producer_id, header.base_offset)
    return open_since


def _is_committed(producer_id: int, paths: Sequence[str], files: Files) -> bool:
    """Whether its next marker says so."""
    for path, position, header in _transactional(paths, files):
        if header.is_control and header.producer_id == producer_id and header.records_count:
            return read_marker(header, path, position, files)[0] is ControlType.COMMIT
    return False


def _transactional(paths: Sequence[str], files: Files) -> Iterator[_Found]:
    for path in paths:
        for position, header in read_batch_headers(path, files=files):
            if header.is_transactional:
                yield _Found(path, position, header)


def _open_in_snapshot(listing: PartitionListing) -> set[tuple[int, int]]:
    if not listing.snapshot_offsets:
        return set()
    newest = _file(listing, listing.snapshot_offsets[-1], SNAPSHOT)
    return {
        (entry.producer_id, entry.current_txn_first_offset)
        for entry in producer_snapshot.read(newest, listing.access)
        if entry.current_txn_first_offset is not None
    }


def _file(listing: PartitionListing, offset: int, suffix: str) -> str:
    return os.path.join(listing.path, file_name(offset, suffix))
