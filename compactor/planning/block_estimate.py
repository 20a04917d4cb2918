"""How much of a log would go, from blocks of it that were drawn by lot. Pure.

What stays of a log is about one record of each key, so the question is how many keys there are:
those in the blocks, and those that `unseen_keys` says are in none of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compactor.planning.sample_estimate import Estimate, cannot_tell
from compactor.planning.unseen_keys import unseen_keys

# on either side: records differ in size
ABOVE, BELOW = 0.04, 0.08
WIDEST = 0.5
HEADER_BYTES = 61


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
    in_blocks: tuple[int, ...]  # of these, how many stand in one of the blocks, in two, …
    drawn: int  # blocks
    of_blocks: int  # that the log has
    clumped: float  # as of clumping
    # how many times the room of an average record those take that are seen to go
    dearer: float = 1.0


def estimate_of(
    blocks: Blocks, shrunk: Callable[[float], float | None] = lambda _: None
) -> Estimate:
    """The share that would go, and how far off that may be.

    shrunk: the share of bytes that goes with a share of records, as tried; None: not known.
    """
    if not blocks.records or not blocks.keys:
        return cannot_tell(blocks.log_bytes, "the sample has no records with keys")
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
        return cannot_tell(blocks.log_bytes, "too few keys came twice in the sample")
    return Estimate(least, greatest, blocks.log_bytes)


def _bytes_share(blocks: Blocks, records_share: float) -> float:
    """The least: what goes is spread evenly, and a batch keeps its header as long as one stays."""
    headers = HEADER_BYTES * blocks.batches / blocks.log_bytes
    in_batch = blocks.records / max(blocks.batches, 1)
    gone: float = records_share * (1 - headers) + headers * records_share**in_batch
    return gone
