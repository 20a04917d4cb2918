"""Estimate how much of a log would go, from blocks of it that were drawn by lot. Pure.

What stays of a log is about one record of each key, so the question is how many keys it has:
those in the blocks, and those that are in none of them.

A key that is in m of all blocks is in k of those drawn with a known probability, wherever in the
log they lie (hypergeometric: without replacement). So the numbers of keys that are in one drawn
block, in two, and so on say in how many blocks keys are: the numbers of keys by m that make what
was seen most likely are approached step by step (EM, or Richardson and Lucy's algorithm). Of all
numbers that make it nearly as likely, those with the fewest and with the most unseen keys are the
interval (a profile likelihood): they are approached with a reward, or a price, for each such key.
Nothing is assumed of how often keys are written, or how far apart.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compactor.planning.expected import Estimate, no_estimate

# on either side: records differ in size
ABOVE, BELOW = 0.04, 0.08
WIDEST = 0.5
HEADER_BYTES = 61
UNLIKELY = 4.0  # so much less may the logarithm of the likelihood be
STEPS, HALVINGS = 400, 12
GRID = 40  # numbers of blocks that a key may stand in, closer where they are small
HIGHEST_PRICE = 50.0
PARTS = 8  # of a log, each of which has its share of the blocks
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """What was seen in the blocks of a log."""

    share: float  # of the log that they are
    log_bytes: int  # theirs, as all that follows
    batches: int
    records: int
    keyless: int  # records that go as such: without a key, or of an aborted transaction
    expired: int  # tombstones past their horizon, which go even as the latest of their keys
    keys: int  # distinct ones
    in_blocks: tuple[int, ...]  # of these, how many stand in one of the blocks, in two, …
    drawn: int  # blocks
    of_blocks: int  # that the log has
    clumped: float  # see clumping
    # how many times the room of an average record those take that are seen to go
    dearer: float = 1.0


class Unseen(NamedTuple):
    """How many keys were not seen."""

    least: float
    most: float


def estimate_of(
    blocks: Blocks, shrunk: Callable[[float], float | None] = lambda _: None
) -> Estimate:
    """The share that would go, and how far off that may be.

    shrunk: the share of bytes that goes with a share of records, as tried; None: not known.
    """
    if not blocks.records or not blocks.keys:
        return no_estimate(blocks.log_bytes, "the sample has no records with keys")
    unseen = unseen_keys(blocks.in_blocks, blocks.drawn, blocks.of_blocks, blocks.clumped)
    records = blocks.records / blocks.share
    gone = blocks.keyless / blocks.records
    expired = blocks.expired / blocks.records
    shares = [
        max(gone, 1 - (blocks.keys + count) / records) for count in (unseen.most, unseen.least)
    ]
    # What stays is among the last records as a rule: whole batches go before, with their headers.
    spread = _bytes_share(blocks, shares[0])
    tried = shrunk(shares[0])
    lowest = spread if tried is None else min(spread, tried)
    # Where most that is seen to go is dearer than the rest, as in front of what was compressed by
    # a cleaning, more bytes go than records, or fewer.
    least = max(0.0, lowest * min(1.0, blocks.dearer) - BELOW)
    greatest = min(1.0, shares[1] * max(1.0, blocks.dearer) + expired + ABOVE)
    if greatest - least > WIDEST:
        return no_estimate(blocks.log_bytes, "too few keys came twice in the sample")
    return Estimate(least, greatest, blocks.log_bytes)


def unseen_keys(seen: Sequence[int], drawn: int, blocks: int, clumped: float = 1.0) -> Unseen:
    """Return how many keys are in none of the blocks that were drawn.

    Args:
        seen: How many keys are in one of the drawn blocks, in two, and so on.
        drawn: How many blocks were drawn.
        blocks: How many blocks the log has.
        clumped: What `clumping` returned.
    """
    counts = np.array(seen, np.float64)
    chances = _chances(len(counts), drawn, blocks)
    if drawn >= blocks or not counts.any():
        return Unseen(0.0, 0.0)
    best, middle = _most_likely(counts, chances, 0.0)
    lowest = best - UNLIKELY * clumped
    # a reward may not make a key that stands in one block worth more than finding it would
    highest_reward = 0.999 * chances[0, 1] / chances[0, 0]
    return Unseen(
        _at_the_edge(counts, chances, (lowest, middle), -HIGHEST_PRICE),
        _at_the_edge(counts, chances, (lowest, middle), highest_reward),
    )


def unevenness(drawn: NDArray[np.int64], blocks: int) -> float:
    """Return how far blocks that were drawn by lot are from the most probable lot.

    What counts is where in the log they are, and how many pairs of them are how far apart.

    Args:
        drawn: The numbers of the blocks, rising.
        blocks: How many blocks the log has.
    """
    share = len(drawn) / blocks
    places = np.bincount(drawn * PARTS // blocks, minlength=PARTS)
    expected = np.bincount(np.arange(blocks) * PARTS // blocks, minlength=PARTS) * share
    found = float((np.square(places - expected) / np.maximum(expected, 1)).sum())
    apart = np.triu(drawn[None, :] - drawn[:, None], 1)
    pairs = np.bincount(apart[apart > 0], minlength=blocks)[1:blocks]
    wanted = (blocks - np.arange(1, blocks)) * share**2
    distance = 1
    while distance < blocks:
        class_ = slice(distance - 1, 2 * distance - 1)
        mean = float(wanted[class_].sum())
        found += (float(pairs[class_].sum()) - mean) ** 2 / max(mean, 1.0)
        distance *= 2
    return found


def clumping(blocks: NDArray[np.int64], keys: NDArray[np.uint64], drawn: int) -> float:
    """How many times as much as by chance the numbers of keys differ that pairs of blocks share.

    blocks, keys: for each key of each block the number of the block, from 0 on, and the key. Where
    few pairs share many keys, as those at one distance, what is seen in two blocks says less.
    """
    order = np.argsort(keys, kind="stable")
    keys, blocks = keys[order], blocks[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    twice = first[np.diff(np.append(first, len(keys))) == 2]
    pairs = blocks[twice] * drawn + blocks[twice + 1]
    shared = np.unique(pairs, return_counts=True)[1].astype(np.float64)
    total, of_pairs = float(shared.sum()), drawn * (drawn - 1) / 2
    if not total:
        return 1.0
    return max(1.0, (float(np.square(shared).sum()) - total**2 / of_pairs) / total)


def _bytes_share(blocks: Blocks, records_share: float) -> float:
    """The least: what goes is spread evenly, and a batch keeps its header as long as one stays."""
    headers = HEADER_BYTES * blocks.batches / blocks.log_bytes
    in_batch = blocks.records / max(blocks.batches, 1)
    gone: float = records_share * (1 - headers) + headers * records_share**in_batch
    return gone


def _chances(most: int, drawn: int, blocks: int) -> FloatArray:
    """Return the chances of keys in m blocks, a row for each m.

    The columns are the chances to be in none, in one, … in `most` of the drawn blocks. Keys that
    are in so many blocks that hardly any is in so few are left out.
    """
    grid = np.unique(np.round(np.geomspace(1, blocks, GRID)).astype(int)).tolist()
    rows = [[_chance(k, m, drawn, blocks) for k in range(most + 1)] for m in grid]
    chances = np.array(rows)
    kept: FloatArray = chances[chances[:, 1:].sum(axis=1) > 1e-6]
    return kept


def _chance(k: int, m: int, drawn: int, blocks: int) -> float:
    if k > min(m, drawn) or blocks - m < drawn - k:
        return 0.0
    ways = _log_ways(m, k) + _log_ways(blocks - m, drawn - k) - _log_ways(blocks, drawn)
    return math.exp(ways)


def _log_ways(of: int, taken: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(taken + 1) - math.lgamma(of - taken + 1)


def _most_likely(counts: FloatArray, chances: FloatArray, reward: float) -> tuple[float, float]:
    """Return the logarithm of the likelihood, and how many keys were not seen.

    They are those with the largest sum of the logarithm and a reward for each key not seen.
    """
    seen, unseen = chances[:, 1:], chances[:, 0]
    weights = seen.sum(axis=1) - reward * unseen
    keys = np.full(len(chances), counts.sum() / len(chances))
    for _ in range(STEPS):
        keys = keys * (seen @ (counts / np.maximum(keys @ seen, 1e-300))) / weights
    expected = keys @ seen
    likelihood = counts * np.log(np.maximum(expected, 1e-300)) - expected
    return float(likelihood.sum()), float(keys @ unseen)


def _at_the_edge(
    counts: FloatArray, chances: FloatArray, known: tuple[float, float], furthest: float
) -> float:
    """Return how many keys were not seen, with the largest reward that is likely enough.

    known: the lowest likelihood, and how many it is without a reward.
    """
    lowest, found = known
    least, most = 1e-4 * abs(furthest), abs(furthest)
    for _ in range(HALVINGS):
        reward = math.sqrt(least * most)
        likelihood, unseen = _most_likely(counts, chances, math.copysign(reward, furthest))
        if likelihood >= lowest:
            least, found = reward, unseen
        else:
            most = reward
    return found
