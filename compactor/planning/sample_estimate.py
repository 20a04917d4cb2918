"""How much of a log would go, from blocks of it that lie evenly over its length. Pure.

What stays of a log is about one record of each key, so the question is how many keys there are. In
how many blocks each key was seen tells how many were not seen: Chao and Lin (2012), for blocks that
are drawn without replacement. That is right where all keys are written equally often, and too few
where they are not; how often keys were seen in three blocks tells how unequal they are, and a
negative binomial distribution how many more there may be then. Keys that come again close to one
another, but not far away, are not seen twice by blocks that lie apart: where neighbouring blocks
share many more keys than distant ones do, nothing is said.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

SIGMAS = 2.5
ALWAYS = 0.04  # on either side: records differ in size, and what is compressed again shrinks less
FEWEST_SEEN_THRICE = 20
LOCAL = 1.5  # so many times as many keys are shared by neighbours as by distant blocks
HEADER_BYTES = 61


class Estimate(NamedTuple):
    """What share of the bytes that are read and rewritten would go."""

    least: float | None  # None: it cannot be told
    most: float | None
    read_bytes: int
    problem: str | None = None  # why it cannot be told

    @property
    def is_exact(self) -> bool:
        return self.least is not None and self.least == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """What was found in the blocks of a log."""

    share: float  # of the log that they are
    log_bytes: int  # theirs, as all that follows
    batches: int
    records: int
    keyless: int  # records that go as such: without a key, or of an aborted transaction
    expired: int  # tombstones past their horizon, which go even as the latest of their keys
    keys: int  # distinct ones
    in_one: int  # of these, how many were seen in one block only, in two, in three
    in_two: int
    in_three: int
    shared_by_neighbours: float  # keys that two blocks have in common, on average
    shared_by_distant: float


def cannot_tell(read_bytes: int, problem: str) -> Estimate:
    """No estimate, and why."""
    return Estimate(None, None, read_bytes, problem)


def estimate_of(blocks: Blocks) -> Estimate:
    """The share that would go, and how far off that may be."""
    if not blocks.records or not blocks.keys:
        return cannot_tell(blocks.log_bytes, "the sample has no records with keys")
    near, far = blocks.shared_by_neighbours, blocks.shared_by_distant
    if near > LOCAL * far + 3 * math.sqrt(max(near, 1.0) / 16):
        problem = "keys come again soon after, which a sample does not see well"
        return cannot_tell(blocks.log_bytes, problem)
    fewest, most = _unseen(blocks)
    records = blocks.records / blocks.share
    gone = blocks.keyless / blocks.records
    expired = blocks.expired / blocks.records
    shares = [max(gone, 1 - (blocks.keys + unseen) / records) for unseen in (most, fewest)]
    # What stays is among the last records as a rule: whole batches go before, with their headers.
    least = max(0.0, _bytes_share(blocks, shares[0]) - ALWAYS)
    greatest = min(1.0, shares[1] + expired + ALWAYS)
    if greatest - least > 0.5:
        return cannot_tell(blocks.log_bytes, "too few keys came twice in the sample")
    return Estimate(least, greatest, blocks.log_bytes)


def _unseen(blocks: Blocks) -> tuple[float, float]:
    """How many keys were in none of the blocks: at least, at most."""
    one, two, three = blocks.in_one, max(blocks.in_two, 1), max(blocks.in_three, 1)
    share = blocks.share
    once_each = one * (1 - share) / share  # as many if each of these were in no other block
    middle = one**2 / (2 * two + share / (1 - share) * one)
    error = SIGMAS * middle * math.sqrt(1 / two + 4 / max(one, 1))
    ratio = 3 * three * one / (2 * two**2)  # 1: all keys alike; 2: as unequal as can be told
    ratio += SIGMAS * ratio * math.sqrt(1 / three + 4 / two + 1 / max(one, 1))
    if blocks.in_three < FEWEST_SEEN_THRICE or ratio >= 1.9:
        most = once_each
    else:
        shape = (2 - ratio) / (ratio - 1) if ratio > 1 else math.inf
        most = middle * (1 + 1 / shape) + error
    return max(0.0, middle - error), min(once_each, most)


def _bytes_share(blocks: Blocks, records_share: float) -> float:
    """The least: what goes is spread evenly, and a batch keeps its header as long as one stays."""
    headers = HEADER_BYTES * blocks.batches / blocks.log_bytes
    in_batch = blocks.records / max(blocks.batches, 1)
    gone: float = records_share * (1 - headers) + headers * records_share**in_batch
    return gone
