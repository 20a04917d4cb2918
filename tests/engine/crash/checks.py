"""What has to be true of a log that was opened after a crash, whatever the crash was.

Slow and obvious: held against the batches that the story had in its files, and against themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.engine.crash.record import Held, Stage
from tests.support.made_log import ABORT_KEY
from tests.support.reference_batch import TRANSACTIONAL

Batches = Mapping[int, Held]
Told = Mapping[str, Any]


def problems_of(
    stages: Sequence[Stage], operations: int, found: Batches, state: Told
) -> Iterator[str]:
    """What is wrong with a log that was opened after so many operations of a story.

    found: the batches of its files. state: what it tells of itself; `aborted` are all its
    aborted transactions, `largest` is its largest time, as it is looked up.
    """
    done, going_on = _around(stages, operations)
    yield from lost(stages, operations, found)
    yield from _unknown([*_since_flush(done), *going_on], found)
    yield from _unordered(found, state)
    start = max(state["log_start_offset"], *(each.log_start for each in [done[-1], *going_on]))
    read = [held for _, held in sorted(found.items()) if held.batch.last_offset >= start]
    yield from _wrong_epochs(read, state)
    yield from _wrong_producers(read, state)
    yield from _wrong_aborted(read, state)
    yield from _wrong_time(found, state)


def _around(stages: Sequence[Stage], operations: int) -> tuple[Sequence[Stage], Sequence[Stage]]:
    """The stages that were reached, and the one that was next."""
    count = sum(stage.operations <= operations for stage in stages)
    return stages[:count], stages[count : count + 1]


def lost(stages: Sequence[Stage], operations: int, found: Batches) -> Iterator[str]:
    """What was flushed is there, unless what was going on takes it away."""
    done, going_on = _around(stages, operations)
    last = done[-1]
    start = max(stage.log_start for stage in (last, *going_on))
    for base, held in last.batches.items():
        end = held.batch.last_offset
        was_to_stay = all(held == stage.batches.get(base) for stage in going_on)
        if end < last.recovery_point and end >= start and was_to_stay and found.get(base) != held:
            yield f"the batch {base}-{end} was flushed, and is not there"


def _since_flush(done: Sequence[Stage]) -> Sequence[Stage]:
    """The stages that a crash may go back to."""
    flushed = [number for number, stage in enumerate(done) if stage.is_flushed]
    return done[flushed[-1] :]


def _unknown(stages: Sequence[Stage], found: Batches) -> Iterator[str]:
    """What is there was there before, and was not taken away before the last flush."""
    for base, held in found.items():
        if all(stage.batches.get(base) != held for stage in stages):
            yield f"the batch {base}-{held.batch.last_offset} is none that was to be there"


def _unordered(found: Batches, state: Told) -> Iterator[str]:
    end = 0
    for base, held in sorted(found.items()):
        if base < end:
            yield f"the batch {base} comes after offset {end}"
        end = held.batch.last_offset + 1
    if end > state["log_end_offset"]:
        yield f"the log ends at {state['log_end_offset']}, and has a batch up to {end}"


def _wrong_epochs(read: Sequence[Held], state: Told) -> Iterator[str]:
    """Each batch lies in the leader epoch that it was written in."""
    epochs = state["leader_epochs"]
    for _, batch in read:
        of_offset = [epoch for epoch, start in epochs if start <= batch.last_offset]
        if of_offset[-1:] != [batch.leader_epoch]:
            yield f"the batch {batch.base_offset} of leader epoch {batch.leader_epoch}, by {epochs}"


def _wrong_producers(read: Sequence[Held], state: Told) -> Iterator[str]:
    """By the last batch of each producer, and by where its open transaction begins."""
    sequences: dict[int, tuple[int, int]] = {}
    open_since: dict[int, int | None] = {}
    for _, batch in read:
        if batch.producer_id < 0:
            continue
        if batch.is_control:
            open_since[batch.producer_id] = None
            continue
        more = batch.last_offset - batch.base_offset
        sequences[batch.producer_id] = batch.base_sequence + more, batch.last_offset
        if batch.attributes & TRANSACTIONAL and open_since.get(batch.producer_id) is None:
            open_since[batch.producer_id] = batch.base_offset
    known = {each["pid"]: each for each in state["producers"]}
    for pid in sequences.keys() | open_since.keys():
        each = known.get(pid)
        if each is None:
            yield f"producer {pid} is not known"
            continue
        if pid in sequences and sequences[pid] != (each["last_seq"], each["last_offset"]):
            yield f"producer {pid} is {each}, and was to be at {sequences[pid]}"
        if each["current_txn_first_offset"] != open_since.get(pid):
            yield f"producer {pid} is {each}, its transaction open since {open_since.get(pid)}"


def _wrong_aborted(read: Sequence[Held], state: Told) -> Iterator[str]:
    """Every aborted transaction whose records are there is known."""
    known = {(pid, first, last) for pid, first, last, _ in state["aborted"]}
    first_of: dict[int, int] = {}
    for _, batch in read:
        pid = batch.producer_id
        if not batch.is_control:
            if batch.attributes & TRANSACTIONAL:
                first_of.setdefault(pid, batch.base_offset)
            continue
        first = first_of.pop(pid, None)
        is_abort = batch.records[0].key == ABORT_KEY
        if is_abort and first is not None and (pid, first, batch.last_offset) not in known:
            yield f"the aborted transaction {first}-{batch.last_offset} of {pid} is not known"


def _wrong_time(found: Batches, state: Told) -> Iterator[str]:
    largest = max((held.batch.max_timestamp for held in found.values()), default=None)
    told = state["largest"] and state["largest"]["timestamp"]
    if largest != told:
        yield f"the largest time is {told}, and was to be {largest}"
