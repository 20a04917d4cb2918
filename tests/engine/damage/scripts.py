"""A script for each damage: a small log is written, shut down or not, damaged, opened and used.

The log of version 2 has two segments with transactions, a codec, index entries and snapshots; that
of old formats has messages, a wrapper, and nothing else.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.engine.replay.replayed import replayed
from tests.engine.rules.case import NOW_MS, Line
from tests.engine.rules.steps import (
    AS_FOLLOWER,
    CLOSE,
    CRASH,
    FILES,
    OPEN,
    ROLL,
    SNAPSHOT,
    TO_END,
    at_time,
    by,
    config,
    damage,
    flush,
    in_txn,
    many,
    marker,
    one,
    read,
)
from tests.support.files.memory import MemoryFiles

SETTINGS = config(index_interval_bytes=0, segment_index_bytes=48)
V2 = (
    in_txn(0, pid=1, leader_epoch=1),
    by(0, pid=2, leader_epoch=1),
    marker(commit=False, leader_epoch=1),
    ROLL,
    many(NOW_MS + 1, NOW_MS + 2, codec="lz4", leader_epoch=2),
    in_txn(1, pid=1, leader_epoch=2),
    marker(leader_epoch=2),
    one(NOW_MS + 3, leader_epoch=2),
)
OLD = (
    many(NOW_MS, NOW_MS + 1, magic=1, base_offset=0, **AS_FOLLOWER),
    many(NOW_MS + 2, NOW_MS + 3, magic=1, codec="gzip", base_offset=2, **AS_FOLLOWER),
    ROLL,
    many(5, magic=0, base_offset=4, **AS_FOLLOWER),
    many(5, 6, magic=0, codec="gzip", base_offset=5, **AS_FOLLOWER),
)
LOGS = {"v2": V2, "old": OLD}
ENDS: dict[str, Sequence[Line]] = {
    "closed": (CLOSE,),
    "crashed": (SNAPSHOT, flush(offset=3), {"op": "checkpoint"}, CRASH),
}
USE = (
    OPEN,
    read("start"),
    read("segment[-1]", "committed"),
    read("end-1", "high_watermark"),
    at_time("max"),
    at_time(NOW_MS + 2),
    {"op": "aborted_txns", "offset": 0, "upper": 100},
    {"op": "epoch_end_offset", "epoch": 1},
    by("next", pid=2, leader_epoch=3),
    TO_END,
    FILES,
    CLOSE,
    OPEN,
    FILES,
)
FLIPS = (0x01, 0x80, 0xFF)


class Damaged(NamedTuple):
    """What was done to which file, and the script that does it."""

    name: str
    script: Sequence[Line]


def scripts(flips: Sequence[int] = FLIPS) -> Iterator[Damaged]:
    """Yield them all: every byte flipped in these ways, every length, files emptied and gone."""
    for log, lines in LOGS.items():
        for end, closing in ENDS.items():
            made = [SETTINGS, OPEN, *lines, TO_END, *closing]
            for file, size in _sizes(made).items():
                for name, harm in _harms(file, size, flips):
                    yield Damaged(f"{log}, {end}, {name}", [*made, harm, *USE])


def _sizes(made: Sequence[Line]) -> dict[str, int]:
    """Every file of the partition that the lines leave, with its size."""
    files = MemoryFiles()
    replayed(files, "/logs", made)
    found = sorted(entry.name for entry in files.list_directory("/logs/t-0"))
    return {name: len(files.read_bytes(f"/logs/t-0/{name}")) for name in found}


def _harms(file: str, size: int, flips: Sequence[int]) -> Iterator[tuple[str, Line]]:
    for at in range(size):
        for xor in flips:
            yield f"{file}, byte {at} ^ {xor}", damage("flip", file=file, at=at, xor=xor)
    for at in range(size):
        yield f"{file} cut to {at}", damage("truncate", file=file, at=at)
    yield f"{file} zeroed", damage("zero", file=file, at=0, length=size)
    yield f"{file} with zeros behind", damage("append_zeros", file=file, length=100)
    yield f"{file} deleted", damage("delete", file=file)
