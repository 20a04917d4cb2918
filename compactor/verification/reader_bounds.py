"""Checks of a partition before its records are compared: its files, offsets and producers.

The cleaner's checkpoint says where its cleaning ended. From that offset on, and in every file of an
untouched log, the bytes have to be the same. Source: compaction C-6.3, C-6.4, C-15.3, C-17, C-18.4.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compactor.host.shell_commands import named
from compactor.log_checks.findings import Finding, difference, finding_of, unexplained
from compactor.verification.evidence import LogEvidence
from storage.errors import CorruptFileError
from storage.file_names import LOG, SEGMENT_SUFFIXES, SNAPSHOT, TXN_INDEX, file_name
from storage.files.local import LOCAL
from storage.formats import checkpoint, leader_epoch_checkpoint, producer_snapshot, txn_index
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.formats.producer_snapshot import ProducerEntry
from storage.formats.txn_index import AbortedTxn
from storage.log import log_dir
from storage.log.log_dir import LogDirListing, PartitionListing
from storage.log.producer_state import ExpiryClock, ProducerState, load_producer_state

Checkpoints = Mapping[str, Mapping[checkpoint.TopicPartition, int]]  # by file name
NO_END = 2**63 - 1
NO_LOGS: Mapping[checkpoint.TopicPartition, int] = {}
_PIECE_BYTES = 1024 * 1024
_KEPT_CHECKPOINTS = (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT)


class Side(NamedTuple):
    """A partition, before or after."""

    listing: PartitionListing
    log_start_offset: int
    log_end_offset: int
    cleaned_to: int | None  # the cleaner's checkpoint
    producers: ProducerState
    has_clean_shutdown: bool

    @property
    def active_base(self) -> int:
        return self.listing.segments[-1].base_offset if self.listing.segments else 0

    def ends(self) -> list[int]:
        """Return where each segment ends."""
        return [*(s.base_offset for s in self.listing.segments[1:]), self.log_end_offset]

    def loaded(self, as_of_ms: int, log_start_offset: int | None = None) -> ProducerState:
        """Return what a broker knows that starts on it at a time, or with another log start."""
        start = self.log_start_offset if log_start_offset is None else log_start_offset
        clock = ExpiryClock(as_of_ms)
        end, is_clean = self.log_end_offset, self.has_clean_shutdown
        return load_producer_state(self.listing, start, end, clock, is_clean)

    def aborted(self) -> list[list[AbortedTxn]]:
        """Return each segment's entries of `.txnindex`; without `.index`, those of a recovery."""
        found = []
        for segment in self.listing.segments:
            rebuilt = self.producers.rebuilt_txn_indexes.get(segment.base_offset)
            path = os.path.join(self.listing.path, file_name(segment.base_offset, TXN_INDEX))
            found.append(
                txn_index.read(path, self.listing.access) if rebuilt is None else list(rebuilt)
            )
        return found


@dataclass(frozen=True, slots=True)
class RemovalBounds:
    """Up to which offsets records may have gone. All exclusive."""

    log_start_offset: int  # below it, retention
    end: int  # superseded records, null keys, tombstones: the end of the offset map
    rewritten_end: int  # aborted records and markers: the end of the segment that holds `end`
    log_end_offset: int  # of the log before; lower where a report says that it was truncated
    # up to where all is gone that had to, by the checkpoint, at most `end`; None: it does not say
    complete_to: int | None

    @property
    def is_cut_short(self) -> bool:
        """Whether something may have been cleaned, and no checkpoint says how far."""
        return self.complete_to is None

    @property
    def may_go_on(self) -> bool:
        """Whether a cleaning may have gone further than the checkpoint says."""
        return self.complete_to is None or self.complete_to < self.end


def read_checkpoints(path: str) -> Checkpoints:
    """All checkpoints of a log directory. Raise CorruptFileError."""
    names = (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START, *_KEPT_CHECKPOINTS)
    return {name: checkpoint.read(os.path.join(path, name), LOCAL) for name in names}


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
    return Side(
        listing=listing,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        cleaned_to=cleaned_to,
        producers=producers,
        has_clean_shutdown=clean_shutdown,
    )


def active_base(before: Side, after: Side) -> int:
    """Return where the last segment begins that no cleaning reached."""
    return max(before.active_base, after.active_base)


NOTHING_KNOWN = LogEvidence()


def bounds_of(before: Side, after: Side, evidence: LogEvidence = NOTHING_KNOWN) -> RemovalBounds:
    """Return how far cleanings got, by the checkpoint that they left and by reports of them."""
    is_cut_short = after.cleaned_to is None or after.cleaned_to == before.cleaned_to
    end = active_base(before, after)
    if after.cleaned_to is not None and not is_cut_short:
        end = min(after.cleaned_to, end)
    complete_to = None if is_cut_short else end
    end = max(end, *(each.end_offset or 0 for each in evidence.rounds), 0)
    if evidence.has_reports and not evidence.is_one_round:  # one of them may have been cut short
        end = max(end, active_base(before, after))
    truncated_to = evidence.reported.truncated_to
    log_end_offset, rewritten_end = before.log_end_offset, NO_END
    if truncated_to is not None:
        log_end_offset = min(log_end_offset, truncated_to)
    else:
        segments = (*before.listing.segments, *after.listing.segments)
        bases = [s.base_offset for s in segments if s.base_offset >= end]
        rewritten_end = min(bases, default=end)
    return RemovalBounds(
        log_start_offset=after.log_start_offset,
        end=end,
        rewritten_end=rewritten_end,
        log_end_offset=log_end_offset,
        complete_to=complete_to,
    )


def check_offsets(
    before: Side, after: Side, as_of_ms: int, evidence: LogEvidence = NOTHING_KNOWN
) -> Iterator[Finding]:
    """Log start, log end, cleaner's checkpoint, open transactions, producers (C-15.3, C-17.1)."""
    path = after.listing.path
    truncated_to = evidence.reported.truncated_to
    was_truncated = truncated_to is not None and truncated_to < before.log_end_offset
    if after.log_end_offset < before.log_end_offset and not was_truncated:
        problem = (
            f"log end offset {after.log_end_offset}, before {before.log_end_offset}; the report of "
            f"{named('log truncate')} (--run-report) would explain it"
        )
        yield unexplained(path, 0, problem)
    if after.log_start_offset < before.log_start_offset:
        yield difference(
            path, 0, f"log start offset {after.log_start_offset}, before {before.log_start_offset}"
        )
    if was_truncated:
        return  # producers and the cleaner's checkpoint went back with it
    yield from _check_cleaned_to(before, after)
    loaded = before.producers
    if after.log_start_offset > before.log_start_offset:
        loaded = before.loaded(as_of_ms, after.log_start_offset)
    was = [state.first_unstable_offset for state in (before.producers, loaded)]
    was.append(None if was[0] is None else max(was[0], after.log_start_offset))
    now = after.producers.first_unstable_offset
    has_grown = after.log_end_offset > before.log_end_offset
    if now not in was and not (has_grown and was[0] is not None):  # a marker may have ended it
        yield difference(
            path, 0, f"the oldest open transaction begins at {now}, before at {was[0]}"
        )
    now_ms = max(as_of_ms, evidence.now_ms or as_of_ms)  # whoever opened it since may forget them
    yield from _check_producers((before, after), loaded, now_ms)


def _check_producers(
    sides: tuple[Side, Side], loaded: ProducerState, now_ms: int
) -> Iterator[Finding]:
    """Check that a broker knows the same producers as before.

    It may forget one that has expired (C-23.4), or whose batches retention has deleted.

    loaded: what a broker knows of the log before if it begins at the log start of after.
    """
    (known, now_known), path = (side.producers.entries for side in sides), sides[1].listing.path
    log_end_offset = sides[0].log_end_offset
    has_grown = sides[1].log_end_offset > log_end_offset
    for producer_id, entry in sorted(known.items()):
        now = now_known.get(producer_id)
        if has_grown and now is not None and _goes_on(entry, now, log_end_offset):
            continue
        is_expired = (
            entry.current_txn_first_offset is None
            and now_ms - entry.timestamp >= producer_snapshot.EXPIRATION_MS
        )
        if now not in (entry, loaded.entries.get(producer_id)) and not (now is None and is_expired):
            yield difference(path, 0, f"producer {producer_id}: {now}, before {entry}")
    for producer_id in sorted(now_known.keys() - known.keys()):
        if not has_grown:
            yield difference(path, 0, f"producer {producer_id} was not known before")


def _goes_on(was: ProducerEntry, now: ProducerEntry, log_end_offset: int) -> bool:
    """Whether batches or a marker that were appended since may have made the one of the other."""
    if now.last_offset is not None and now.last_offset >= log_end_offset:
        return True
    of_data = ("producer_epoch", "last_sequence", "last_offset")
    return now.producer_epoch > was.producer_epoch or all(
        getattr(was, name) == getattr(now, name) for name in of_data
    )


def _check_cleaned_to(before: Side, after: Side) -> Iterator[Finding]:
    was, now = before.cleaned_to, after.cleaned_to
    if now is None or now == was:
        return
    problem = f"the cleaner's checkpoint is {now}, before {was}: "
    has_grown = after.log_end_offset > before.log_end_offset
    unstable = (after if has_grown else before).producers.first_unstable_offset
    active = active_base(before, after)
    if was is not None and before.log_start_offset <= was <= before.log_end_offset and now < was:
        yield difference(after.listing.path, 0, problem + "it has moved back")
    if now > active:
        yield difference(after.listing.path, 0, problem + f"the active segment begins at {active}")
    elif unstable is not None and now > max(unstable, after.log_start_offset):
        yield difference(
            after.listing.path, 0, problem + f"a transaction is open since offset {unstable}"
        )


def check_checkpoints(
    before: Checkpoints,
    after: Checkpoints,
    new: LogDirListing,
    truncated_to: Mapping[checkpoint.TopicPartition, int] = NO_LOGS,
) -> Iterator[Finding]:
    """High watermarks and recovery points do not go back, nor past the log end (C-15.3).

    truncated_to: where logs ended, by the report of who did it.

    CorruptFileError, OSError where the end of a log cannot be read.
    """
    logs, path = {(log.topic, log.partition): log for log in new.partitions}, new.path
    for name in _KEPT_CHECKPOINTS:
        for (topic, partition), offset in before[name].items():
            offset = min(offset, truncated_to.get((topic, partition), offset))
            now, log = after[name].get((topic, partition)), logs.get((topic, partition))
            if now is not None and now > offset and log is not None:
                has_changed = now > log_dir.log_end_offset(log)
            else:
                has_changed = now != offset
            if has_changed:
                problem = f"{topic}-{partition} has {now}, before {offset}"
                yield difference(os.path.join(path, name), 0, problem)


def check_untouched(before: Side, after: Side, bounds: RemovalBounds) -> Iterator[Finding]:
    """Segments that no cleaning has reached have the same bytes, but for what was appended.

    So has one that ends above the log start: retention deletes whole segments.
    """
    names = {
        file_name(s.base_offset, suffix)
        for side in (before, after)
        for s, end in zip(side.listing.segments, side.ends(), strict=False)
        for suffix in (LOG, TXN_INDEX)
        if bounds.rewritten_end <= s.base_offset < bounds.log_end_offset
        and bounds.log_start_offset < max(end, s.base_offset + 1)
    }
    has_grown = after.log_end_offset > before.log_end_offset
    of_active = file_name(before.active_base, "")
    for name in sorted({*names, PARTITION_METADATA}):
        one, other = (os.path.join(side.listing.path, name) for side in (before, after))
        may_grow = has_grown and name.startswith(of_active)
        if not (is_same(one, other) or (may_grow and _has_grown(one, other))):
            yield difference(other, 0, "has changed, though no cleaning changes it")


def check_epochs(before: Side, after: Side, bounds: RemovalBounds) -> Iterator[Finding]:
    """Check that a broker that loads the log gets the same leader epochs.

    It forgets those that begin at the log end or later, and cuts the first one at the log start:
    recovery and retention do the same in the file. After an unclean shutdown, it takes up
    epochs of batches that the file does not have. Source: LogLoader, UnifiedLog; spec L-16, F-13.
    """
    one, other = (
        os.path.join(side.listing.path, LEADER_EPOCH_CHECKPOINT) for side in (before, after)
    )
    if is_same(one, other):
        return
    start = max(before.log_start_offset, after.log_start_offset)
    end = min(bounds.log_end_offset, after.log_end_offset)
    was, now = (_loaded_epochs(path, start, end) for path in (one, other))
    if was == now or (not before.has_clean_shutdown and set(was) < set(now)):
        return
    yield difference(other, 0, "has changed, though no cleaning changes it")


def epochs_begin_at_start(side: Side) -> bool:
    """Return whether the leader epochs begin at the log start, or none is known."""
    path = os.path.join(side.listing.path, LEADER_EPOCH_CHECKPOINT)
    entries = leader_epoch_checkpoint.read(path, LOCAL)
    return not entries or entries[0].start_offset >= side.log_start_offset


def _loaded_epochs(path: str, start: int, end: int) -> list[EpochEntry]:
    entries = leader_epoch_checkpoint.read(path, LOCAL)
    leader_epoch_checkpoint.check(entries, path)
    entries = [entry for entry in entries if entry.start_offset < end]
    behind = [entry for entry in entries if entry.start_offset > start]
    first = entries[: len(entries) - len(behind)][-1:]
    return [*(entry._replace(start_offset=start) for entry in first if start < end), *behind]


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
    names = {
        entry.name for entry in listing.access.list_directory(listing.path) if not entry.is_dir
    }
    kinds = (*SEGMENT_SUFFIXES, SNAPSHOT)
    kept = {LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA}
    return sorted(name for name in names if name.endswith(kinds) or name in kept)


def is_same(before: str, after: str) -> bool:
    """Return whether two files have the same bytes; both may be missing."""
    there = [LOCAL.exists(path) for path in (before, after)]
    if not all(there):
        return not any(there)
    return _is_one(before, after) or _has_same_bytes(before, after)


def _has_grown(before: str, after: str) -> bool:
    """Whether a file begins with all the bytes that it had."""
    if not LOCAL.exists(before) or not LOCAL.exists(after):
        return LOCAL.exists(after)
    return _has_same_bytes(before, after, may_grow=True)


def _has_same_bytes(before: str, after: str, may_grow: bool = False) -> bool:
    with LOCAL.open_named(before) as one, LOCAL.open_named(after) as other:
        was, now = (os.fstat(file.fileno()).st_size for file in (one, other))
        if was != now and not (may_grow and was < now):
            return False
        while piece := one.read(_PIECE_BYTES):
            if other.read(len(piece)) != piece:
                return False
    return True


def _is_one(before: str, after: str) -> bool:
    try:
        return LOCAL.is_same(before, after)
    except FileNotFoundError:
        return False


def damage(error: CorruptFileError | OSError, path: str) -> Finding:
    """What stops a comparison."""
    end = "; from here on, nothing of this partition was compared"
    return finding_of(error, path, end)
