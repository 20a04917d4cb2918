"""What has to be true of a log directory that was recovered, whatever the crash was."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from storage.file_names import SEGMENT_SUFFIXES, SNAPSHOT
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from tests.crash import reader
from tests.crash.reader import Segment, Value
from tests.crash.states import TEMPORARY
from tests.support.reference_batch import ReferenceBatch

OF_EVERY_PARTITION = {LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA}


class Log(NamedTuple):
    """A log as a run began with it, or as it left it."""

    segments: list[Segment]
    batches: list[ReferenceBatch]
    log_start_offset: int
    cleaned_to: int | None  # in the cleaner checkpoint
    last_epoch: tuple[int, int] | None  # and where it begins
    metadata: bytes  # of partition.metadata; b"" if there is none
    snapshots: dict[int, bytes]  # of producers, by offset


class Ends(NamedTuple):
    """Every log of a log directory before a run and after it, by the partition's name."""

    before: dict[str, Log]
    after: dict[str, Log]
    split: dict[str, Log]  # as it was between split and cleaning


def logs_of(log_dir: Path) -> dict[str, Log]:
    starts = checkpoint.read(str(log_dir / checkpoint.LOG_START))
    cleaned = checkpoint.read(str(log_dir / checkpoint.CLEANER_OFFSET))
    found = {}
    for path in sorted(log_dir.iterdir()):
        if path.is_dir():
            topic, _, number = path.name.rpartition("-")
            segments = reader.segments_of(path)
            batches = reader.batches_of(segments)
            key = topic, int(number)
            epochs = leader_epoch_checkpoint.read(str(path / LEADER_EPOCH_CHECKPOINT))
            found[path.name] = Log(
                segments,
                batches,
                starts.get(key, 0),
                cleaned.get(key),
                epochs[-1] if epochs else None,
                _read(path / PARTITION_METADATA),
                {int(p.stem): p.read_bytes() for p in path.glob(f"*{SNAPSHOT}")},
            )
    return found


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def changed_values(ends: Ends) -> list[str]:
    """Keys whose value readers of committed records find changed by what was not cut short."""
    changed = []
    for name, before in ends.before.items():
        after = ends.after[name]
        start = max(before.log_start_offset, after.log_start_offset)
        then, now = (
            {key: found for key, found in committed.items() if found.value is not None}
            for _, committed in (reader.latest(log.batches, start) for log in (before, after))
        )
        changed += [f"{name}: {key!r}" for key, _ in then.items() ^ now.items()]
    return changed


def problems_of(log_dir: Path, ends: Ends, may_be_left: tuple[str, ...] = ()) -> Iterator[str]:
    """What is wrong with a recovered log directory.

    may_be_left: what names of files may contain that a broker neither knows nor removes.
    """
    found = logs_of(log_dir)
    if found.keys() != ends.before.keys():
        yield f"partitions {sorted(found)}"
        return
    for path in log_dir.iterdir():
        if path.is_file() and path.name.endswith(TEMPORARY) and TEMPORARY not in may_be_left:
            yield f"{path.name} is left over"
    for name, log in found.items():
        before, after = ends.before[name], ends.after[name]
        checks = (
            _left_over(log_dir / name, log, may_be_left),
            _unknown_segments(log, (before, after, ends.split[name])),
            _unordered(log),
            _lost(log, before, after),
            _epoch_lost(log, before, after),
            _not_kept(log, before, after),
            _back_from_the_dead(log, before, after),
        )
        for check in checks:
            for problem in check:
                yield f"{name}: {problem}"


def _left_over(partition: Path, log: Log, may_be_left: tuple[str, ...]) -> Iterator[str]:
    bases = {segment.base_offset for segment in log.segments}
    for path in partition.iterdir():
        prefix, _, kind = path.name.partition(".")
        is_segment = f".{kind}" in SEGMENT_SUFFIXES and int(prefix) in bases
        if is_segment or f".{kind}" == SNAPSHOT or path.name in OF_EVERY_PARTITION:
            continue
        if not any(part in path.name for part in may_be_left):
            yield f"{path.name} is left over"


def _unknown_segments(log: Log, stages: Sequence[Log]) -> Iterator[str]:
    """Every .log is that of a stage of the run, and has the index files that it had there.

    But for an empty one with nothing in its indexes, of which any is right.
    """
    for segment in log.segments:
        same_log = [
            known
            for stage in stages
            for known in stage.segments
            if (known.base_offset, known.log) == (segment.base_offset, segment.log)
        ]
        if not segment.log and not (
            segment.offset_index or segment.time_index or segment.txn_index
        ):
            continue
        if not same_log:
            yield f"segment {segment.base_offset}: neither the old one nor the new one"
        elif segment not in same_log:
            yield f"segment {segment.base_offset}: its index files are not those of its .log"


def _unordered(log: Log) -> Iterator[str]:
    end_offset = 0
    for segment in log.segments:
        if segment.base_offset < end_offset:
            yield f"segment {segment.base_offset} begins before offset {end_offset}"
        for batch in segment.batches:
            if batch.base_offset < max(end_offset, segment.base_offset):
                yield f"batch {batch.base_offset} comes after offset {end_offset}"
            end_offset = batch.last_offset + 1


def _lost(log: Log, before: Log, after: Log) -> Iterator[str]:
    """No key's latest record, no end of the log, no record that was never there."""
    starts = [_first_read(before, each.log_start_offset) for each in (log, before, after)]
    if starts[0] not in starts[1:]:
        yield f"log start offset {log.log_start_offset}"
    whole = max((before, after), key=lambda each: len(reader.records_of(each.batches)))
    there, were = reader.records_of(log.batches), reader.records_of(whole.batches)
    for offset, record in there.items():
        if were.get(offset) != record:
            yield f"record {offset} is {record}, was {were.get(offset)}"
    start = log.log_start_offset
    if whole is after:  # what is being brought back comes from the end
        first, least = (each.segments[0].base_offset for each in (log, before))
        start = max(start, min(first, least))
    all_now, committed_now = reader.latest(log.batches, start)
    all_then, committed_then = reader.latest(whole.batches, start)
    for key in committed_then.keys() | committed_now.keys():
        yield from _changed(key, "committed", committed_now.get(key), (committed_then.get(key),))
    for key in all_then.keys() | all_now.keys():  # aborted records may have gone
        allowed = all_then.get(key), committed_then.get(key)
        yield from _changed(key, "all", all_now.get(key), allowed)
    ends = [_end_offset(each) for each in (log, before, after)]
    if ends[0] not in ends[1:]:
        yield f"the log ends at {ends[0]}"


def _end_offset(log: Log) -> int:
    ends = [batch.last_offset + 1 for batch in log.batches]
    return max([*ends, *(segment.base_offset for segment in log.segments)], default=0)


def _first_read(log: Log, log_start_offset: int) -> int | None:
    """The first batch that who begins at a log start offset reads of a log."""
    offsets = (b.base_offset for b in log.batches if b.last_offset >= log_start_offset)
    return next(offsets, None)


def _changed(
    key: bytes, of: str, now: Value | None, allowed: tuple[Value | None, ...]
) -> Iterator[str]:
    """A tombstone may have gone, with all that it hides; a record may not."""
    may_be_none = any(then is None or then.value is None for then in allowed)
    if now not in allowed and not (now is None and may_be_none):
        yield f"latest of key {key!r} of {of} records is {now}, was one of {allowed}"


def _epoch_lost(log: Log, before: Log, after: Log) -> Iterator[str]:
    """Without the last leader epoch a follower would be told to cut its log.

    Kafka itself lets one go that begins where the log ends.
    """
    may_be = {before.last_epoch, after.last_epoch}
    if any(epoch and epoch[1] >= _end_offset(log) for epoch in may_be):
        may_be.add(None)
    if log.last_epoch not in may_be:
        yield f"last leader epoch {log.last_epoch}, was one of {may_be}"


def _not_kept(log: Log, before: Log, after: Log) -> Iterator[str]:
    """Without the one a broker puts an empty log in its place; without the other it knows, after a
    clean shutdown, of no open transaction and of no producer that may go on."""
    if log.metadata != before.metadata:
        yield f"{PARTITION_METADATA} is {log.metadata!r}, was {before.metadata!r}"
    end_offset = _end_offset(log)
    if not log.batches or end_offset <= log.log_start_offset:
        return  # of a log that has nothing to read Kafka itself lets it go (C-23.4)
    of_the_end = [each.snapshots.get(end_offset) for each in (log, before, after)]
    if of_the_end[0] is None or of_the_end[0] not in of_the_end[1:]:
        yield f"producer snapshot {end_offset} is {of_the_end[0]!r}, was {of_the_end[1:]}"


def _back_from_the_dead(log: Log, before: Log, after: Log) -> Iterator[str]:
    """What lies below the cleaner checkpoint is what a cleaning to there has left."""
    known = {before.cleaned_to: before, after.cleaned_to: after}
    if log.cleaned_to not in known:
        yield f"cleaner checkpoint {log.cleaned_to}"
    elif log.cleaned_to is not None:
        kept = reader.records_of(known[log.cleaned_to].batches)
        for offset in reader.records_of(log.batches):
            if offset < log.cleaned_to and offset not in kept:
                yield f"record {offset} is back below the cleaner checkpoint {log.cleaned_to}"
