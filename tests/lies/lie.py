"""What a lie is: where it is told, and what it makes of what a task says there."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

Row = dict[str, Any]  # a value that travels, by the names of its fields


class Place(StrEnum):
    LOG = "the cleaned segment"  # list[bytes]: its batches
    OFFSET_INDEX = "its .index"  # bytes
    TIME_INDEX = "its .timeindex"
    TXN_INDEX = "its .txnindex"
    STATES = "what becomes of the records of a part"  # Records
    MAP = "what the latest record of a key is"  # Merged
    TXN_BATCHES = "transactional and control batches"  # structured array
    SCANNED = "rows of the scan"  # list[Row], of one log
    RESOLVED = "rows of the resolve"
    REWRITTEN = "rows of the rewrite"


class Known(NamedTuple):
    """What whoever lies may draw on."""

    source: str  # the log, as the golden corpora call it
    segments: Mapping[int, tuple[bytes, ...]]  # its batches before, by base offset of the segment
    entries: bytes  # all that stands in its .txnindex files


# None, or NothingToTell: there is nothing to lie about
Tell = Callable[[Any, random.Random, Known], Any]
Value = TypeVar("Value")


class NothingToTell(Exception):  # noqa: N818  # it is no error
    """There is nothing to lie about."""


def one_of(some: Sequence[Value], chance: random.Random) -> Value:
    """One of these by chance; NothingToTell where there is none."""
    if not len(some):
        raise NothingToTell
    return chance.choice(some)


@dataclass(frozen=True, slots=True)
class Lie:
    name: str
    place: Place
    tell: Tell

    def __str__(self) -> str:
        return f"{self.place}: {self.name}"


class Case(NamedTuple):
    """One lie about one log; the seed decides about which of its records, entries or fields."""

    lie: Lie
    source: str
    seed: int

    def __str__(self) -> str:
        return f"{self.lie} ({self.source}, seed {self.seed})"
