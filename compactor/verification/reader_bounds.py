"""What is held of a partition before a record is compared: its files, offsets and producers.

The cleaner's checkpoint says where its cleaning ended. From there on, and in every file of an
untouched log, the bytes have to be the same. Source: compaction C-6.3, C-6.4, C-15.3, C-17, C-18.4.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compactor.verification.verify_batches import Finding, difference, finding_of
from storage.errors import CorruptFileError
from storage.file_names import LOG, SEGMENT_SUFFIXES, SNAPSHOT, TXN_INDEX, file_name
from storage.files import filesystem
from storage.formats import checkpoint, producer_snapshot, txn_index
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.formats.txn_index import AbortedTxn
from storage.log import log_dir
from storage.log.log_dir import PartitionListing
from storage.log.producer_state import ExpiryClock, ProducerState, load_producer_state

Checkpoints = Mapping[str, Mapping[checkpoint.TopicPartition, int]]  # by file name
_PIECE_BYTES = 1024 * 1024
_KEPT_CHECKPOINTS = (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT)


class Side(NamedTuple):
    """A partition, before or after."""

    listing: PartitionListing
    log_start_offset: int
    log_end_offset: int
    cleaned_to: int | None  # the cleaner's checkpoint
    producers: ProducerState

    @property
    def active_base(self) -> int:
        return self.listing.segments[-1].base_offset if self.listing.segments else 0

    def ends(self) -> list[int]:
        """Where each segment ends."""
        return [*(s.base_offset for s in self.listing.segments[1:]), self.log_end_offset]

    def aborted(self) -> list[list[AbortedTxn]]:
        """The entries of each segment's `.txnindex`; of one without `.index`, those of its
        recovery."""
        found = []
        for segment in self.listing.segments:
            rebuilt = self.producers.rebuilt_txn_indexes.get(segment.base_offset)
            path = os.path.join(self.listing.path, file_name(segment.base_offset, TXN_INDEX))
            found.append(txn_index.read(path) if rebuilt is None else list(rebuilt))
        return found


@dataclass(frozen=True, slots=True)
class Bounds:
    """Up to where what may have gone. All exclusive."""

    log_start_offset: int  # below it, retention
    end: int  # superseded records, null keys, tombstones: the end of the offset map
    rewritten_end: int  # aborted records and markers: the end of the segment that holds `end`
    is_cut_short: bool  # something was cleaned, and no checkpoint says how far


def read_checkpoints(path: str) -> Checkpoints:
    """All checkpoints of a log directory. Raise CorruptFileError."""
    names = (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START, *_KEPT_CHECKPOINTS)
    return {name: checkpoint.read(os.path.join(path, name)) for name in names}


def read_side(
    listing: PartitionListing, checkpoints: Checkpoints, as_of_ms: int, clean_shutdown: bool
) -> Side:
    """What a broker that starts on the partition knows. Raise CorruptFileError, OSError."""
    name = listing.topic, listing.partition
    first = listing.segments[0].base_offset if listing.segments else 0
    log_start_offset = max(checkpoints[checkpoint.LOG_START].get(name, 0), first)
    log_end_offset = log_dir.log_end_offset(listing)
    producers = load_producer_state(
        listing, log_start_offset, log_end_offset, ExpiryClock(as_of_ms), clean_shutdown
    )
    cleaned_to = checkpoints[checkpoint.CLEANER_OFFSET].get(name)
    return Side(listing, log_start_offset, log_end_offset, cleaned_to, producers)


def bounds_of(before: Side, after: Side) -> Bounds:
    """How far the cleaning got, by the checkpoint after it."""
    is_cut_short = after.cleaned_to is None or after.cleaned_to == before.cleaned_to
    end = before.active_base
    if after.cleaned_to is not None and not is_cut_short:
        end = min(after.cleaned_to, end)
    bases = [s.base_offset for s in before.listing.segments if s.base_offset >= end]
    return Bounds(after.log_start_offset, end, min(bases, default=end), is_cut_short)


def check_offsets(before: Side, after: Side, as_of_ms: int) -> Iterator[Finding]:
    """Log start, log end, cleaner's checkpoint, open transactions, producers (C-15.3, C-17.1)."""
    path = after.listing.path
    if after.log_end_offset != before.log_end_offset:
        yield difference(
            path, 0, f"log end offset {after.log_end_offset}, before {before.log_end_offset}"
        )
    if after.log_start_offset < before.log_start_offset:
        yield difference(
            path, 0, f"log start offset {after.log_start_offset}, before {before.log_start_offset}"
        )
    yield from _check_cleaned_to(before, after)
    if after.producers.first_unstable_offset != before.producers.first_unstable_offset:
        was, now = (s.producers.first_unstable_offset for s in (before, after))
        yield difference(path, 0, f"the oldest open transaction begins at {now}, before at {was}")
    yield from _check_producers(before.producers, after.producers, path, as_of_ms)


def _check_producers(
    before: ProducerState, after: ProducerState, path: str, as_of_ms: int
) -> Iterator[Finding]:
    """A broker knows the same producers; one that has expired may be forgotten (C-23.4)."""
    for producer_id, entry in sorted(before.entries.items()):
        now = after.entries.get(producer_id)
        is_expired = (
            entry.current_txn_first_offset is None
            and as_of_ms - entry.timestamp >= producer_snapshot.EXPIRATION_MS
        )
        if now != entry and not (now is None and is_expired):
            yield difference(path, 0, f"producer {producer_id}: {now}, before {entry}")
    for producer_id in sorted(after.entries.keys() - before.entries.keys()):
        yield difference(path, 0, f"producer {producer_id} was not known before")


def _check_cleaned_to(before: Side, after: Side) -> Iterator[Finding]:
    was, now = before.cleaned_to, after.cleaned_to
    if now is None or now == was:
        return
    problem = f"the cleaner's checkpoint is {now}, before {was}: "
    unstable = before.producers.first_unstable_offset
    if was is not None and before.log_start_offset <= was <= before.log_end_offset and now < was:
        yield difference(after.listing.path, 0, problem + "it has moved back")
    if now > before.active_base:
        yield difference(
            after.listing.path, 0, problem + f"the active segment begins at {before.active_base}"
        )
    elif unstable is not None and now > unstable:
        yield difference(
            after.listing.path, 0, problem + f"a transaction is open since offset {unstable}"
        )


def check_log_start(before: Side, after: Side, checkpoints: Checkpoints) -> Iterator[Finding]:
    """A log that begins later than before has a checkpoint that says so (C-18.4)."""
    name = after.listing.topic, after.listing.partition
    said = checkpoints[checkpoint.LOG_START].get(name)
    if after.log_start_offset > before.log_start_offset and said != after.log_start_offset:
        problem = (
            f"the log begins at offset {after.log_start_offset}, before at "
            f"{before.log_start_offset}, and {checkpoint.LOG_START} says {said}"
        )
        yield difference(after.listing.path, 0, problem)


def check_checkpoints(before: Checkpoints, after: Checkpoints, path: str) -> Iterator[Finding]:
    """High watermarks and recovery points are nobody's to change (C-15.3)."""
    for name in _KEPT_CHECKPOINTS:
        for (topic, partition), offset in before[name].items():
            now = after[name].get((topic, partition))
            if now != offset:
                problem = f"{topic}-{partition} has {now}, before {offset}"
                yield difference(os.path.join(path, name), 0, problem)


def check_untouched(before: Side, after: Side, bounds: Bounds) -> Iterator[Finding]:
    """Segments that no cleaning has reached have the same bytes, and the epochs of leaders too."""
    names = {
        file_name(s.base_offset, suffix)
        for side in (before, after)
        for s in side.listing.segments
        for suffix in (LOG, TXN_INDEX)
        if s.base_offset >= max(bounds.rewritten_end, bounds.log_start_offset)
    }
    if after.log_start_offset == before.log_start_offset:
        names.add(LEADER_EPOCH_CHECKPOINT)
    for name in sorted({*names, PARTITION_METADATA}):
        path = os.path.join(after.listing.path, name)
        if not is_same(os.path.join(before.listing.path, name), path):
            yield difference(path, 0, "has changed, though no cleaning changes it")


def is_untouched(before: PartitionListing, after: PartitionListing) -> bool:
    """Whether every file of a log is what it was, byte for byte."""
    names = _names(before)
    return names == _names(after) and all(
        is_same(os.path.join(before.path, name), os.path.join(after.path, name)) for name in names
    )


def is_linked(before: PartitionListing, after: PartitionListing) -> bool:
    """Whether a file of both is one file: a copy made with hard links."""
    return any(
        _is_one(os.path.join(before.path, name), os.path.join(after.path, name))
        for name in _names(before)
    )


def _names(listing: PartitionListing) -> list[str]:
    names = {entry.name for entry in filesystem.list_directory(listing.path) if not entry.is_dir}
    kinds = (*SEGMENT_SUFFIXES, SNAPSHOT)
    kept = {LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA}
    return sorted(name for name in names if name.endswith(kinds) or name in kept)


def is_same(before: str, after: str) -> bool:
    """Whether two files have the same bytes; neither may be there."""
    there = [filesystem.exists(path) for path in (before, after)]
    if not all(there):
        return not any(there)
    return _is_one(before, after) or _has_same_bytes(before, after)


def _has_same_bytes(before: str, after: str) -> bool:
    with open(before, "rb", buffering=0) as one, open(after, "rb", buffering=0) as other:
        if os.fstat(one.fileno()).st_size != os.fstat(other.fileno()).st_size:
            return False
        while piece := one.read(_PIECE_BYTES):
            if other.read(len(piece)) != piece:
                return False
    return True


def _is_one(before: str, after: str) -> bool:
    try:
        return os.path.samefile(before, after)
    except FileNotFoundError:
        return False


def damage(error: CorruptFileError | OSError, path: str) -> Finding:
    """What stops a comparison."""
    end = "; from here on, nothing of this partition was compared"
    return finding_of(error, path, end)
