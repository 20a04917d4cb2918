"""Lies about what becomes of records: sums and files follow from them, and agree with one another.

They are what a scan or a resolve would decide that has a mistake.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.txn_batches import ABORT, COMMIT, DATA
from storage.formats.batch_columns import (
    ABORTED,
    CONTROL_RECORD,
    EXPIRED,
    IN_MAP,
    KEEP,
    NULL_KEY,
    REASON_MASK,
    SUPERSEDED,
    TOMBSTONE,
)
from tests.lies.lie import Known, Lie, Place, one_of

TxnBatches = NDArray[np.void]


class Records(NamedTuple):
    """The columns of a part, in the order of its records; to be changed in place."""

    first_hash: NDArray[np.uint64]
    second_hash: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    states: NDArray[np.uint8]


class Merged(NamedTuple):
    """The entries of a hash partition, in the order of the log; to be changed in place."""

    entries: NDArray[np.uint64]
    superseded: NDArray[np.uint8]


def decision_lies() -> Iterator[Lie]:
    for (was, becomes), name in STATES.items():
        yield Lie(name, Place.STATES, _state(was, becomes))
    yield Lie("a tombstone goes early", Place.STATES, _early)
    yield Lie("the older record of a key stays", Place.STATES, _older_in_part)
    yield Lie("two keys are taken for one", Place.STATES, _one_hash)
    yield Lie("a key is not known again", Place.STATES, _other_hash)
    yield Lie("a latest record goes", Place.MAP, _merged(0, 1))
    yield Lie("a superseded record stays", Place.MAP, _merged(1, 0))
    yield Lie("the older record of a key stays", Place.MAP, _older_in_map)
    for name, change in TXN_BATCHES.items():
        yield Lie(name, Place.TXN_BATCHES, change)


STATES = {
    (KEEP, SUPERSEDED): "a latest record goes",
    (SUPERSEDED, KEEP): "a superseded record stays",
    (KEEP, NULL_KEY): "a record with a key goes as one without",
    (NULL_KEY, KEEP): "a record without a key stays",
    (KEEP, ABORTED): "a committed record goes as aborted",
    (ABORTED, KEEP): "an aborted record stays",
    (EXPIRED, KEEP): "a tombstone stays past its horizon",
}


def _state(was: int, becomes: int) -> Callable[..., Records | None]:
    def tell(records: Records, chance: random.Random, _: Known) -> Records | None:
        states = records.states
        is_data = states & CONTROL_RECORD == 0
        able = np.flatnonzero((states & REASON_MASK == was) & is_data).tolist()
        _set(states, one_of(able, chance), becomes)
        return records

    return tell


def _set(states: NDArray[np.uint8], row: int, reason: int) -> None:
    states[row] = (int(states[row]) & ~REASON_MASK & 0xFF) | reason
    if reason == NULL_KEY:
        states[row] &= ~IN_MAP & 0xFF


def _early(records: Records, chance: random.Random, _: Known) -> Records | None:
    states = records.states
    wanted = (states & REASON_MASK == KEEP) & (states & TOMBSTONE != 0)
    able = np.flatnonzero(wanted & (states & CONTROL_RECORD == 0)).tolist()
    _set(states, one_of(able, chance), EXPIRED)
    return records


def _older_in_part(records: Records, chance: random.Random, _: Known) -> Records | None:
    """It and the later record change places."""
    reasons = records.states & REASON_MASK
    for row in chance.sample(range(len(reasons)), len(reasons)):
        same = (records.first_hash == records.first_hash[row]) & (reasons == KEEP)
        later = np.flatnonzero(same & (records.offsets > records.offsets[row]))
        if reasons[row] == SUPERSEDED and len(later):
            _set(records.states, row, KEEP)
            _set(records.states, int(later[-1]), SUPERSEDED)
            return records
    return None


def _one_hash(records: Records, chance: random.Random, _: Known) -> Records | None:
    """Where both may stay, so that the later one takes the earlier one with it."""
    may_stay = records.states & (REASON_MASK | CONTROL_RECORD) == KEEP
    able = np.flatnonzero(may_stay & (records.states & IN_MAP != 0)).tolist()
    if len(able) < 2:
        return None
    one, other = chance.sample(able, 2)
    if records.first_hash[one] == records.first_hash[other]:
        return None
    for hashes in (records.first_hash, records.second_hash):
        hashes[one] = hashes[other]
    return records


def _other_hash(records: Records, chance: random.Random, _: Known) -> Records | None:
    may_stay = records.states & (REASON_MASK | CONTROL_RECORD) == KEEP
    able = np.flatnonzero(may_stay).tolist()
    records.second_hash[one_of(able, chance)] ^= np.uint64(1 << chance.randrange(64))
    return records


def _merged(was: int, becomes: int) -> Callable[..., Merged | None]:
    def tell(merged: Merged, chance: random.Random, _: Known) -> Merged | None:
        able = np.flatnonzero(merged.superseded == was).tolist()
        merged.superseded[one_of(able, chance)] = becomes
        return merged

    return tell


def _older_in_map(merged: Merged, chance: random.Random, _: Known) -> Merged | None:
    for row in chance.sample(range(len(merged.superseded)), len(merged.superseded)):
        same = (merged.entries[:, :2] == merged.entries[row, :2]).all(axis=1)
        same[: row + 1] = False
        later = np.flatnonzero(same & (merged.superseded == 0))
        if merged.superseded[row] and len(later):
            merged.superseded[row], merged.superseded[later[-1]] = 0, 1
            return merged
    return None


def _txn_field(name: str, by: int) -> Callable[..., TxnBatches | None]:
    def tell(batches: TxnBatches, chance: random.Random, _: Known) -> TxnBatches | None:
        batches[name][one_of(range(len(batches)), chance)] += by
        return batches

    return tell


def _kind(was: int, becomes: int) -> Callable[..., TxnBatches | None]:
    def tell(batches: TxnBatches, chance: random.Random, _: Known) -> TxnBatches | None:
        able = np.flatnonzero(batches["kind"] == was).tolist()
        batches["kind"][one_of(able, chance)] = becomes
        return batches

    return tell


def _row_lost(batches: TxnBatches, chance: random.Random, _: Known) -> TxnBatches | None:
    return np.delete(batches, one_of(range(len(batches)), chance))


TXN_BATCHES: dict[str, Callable[..., Any]] = {
    "one is lost": _row_lost,
    "one of another producer": _txn_field("producer_id", 1),
    "a base offset too large": _txn_field("base_offset", 1),
    "a last offset too large": _txn_field("last_offset", 1),
    "a last offset too small": _txn_field("last_offset", -1),
    "a count of records": _txn_field("records", 1),
    "a horizon is reached": _txn_field("horizon", 1),
    "a horizon is not reached": _txn_field("horizon", -1),
    "a commit is an abort": _kind(COMMIT, ABORT),
    "an abort is a commit": _kind(ABORT, COMMIT),
    "data is a commit": _kind(DATA, COMMIT),
    "data is an abort": _kind(DATA, ABORT),
    "a commit is data": _kind(COMMIT, DATA),
}
