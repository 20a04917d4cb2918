"""Lies about the index files of a cleaned segment; the checksums that are told of them fit."""

import random
from collections.abc import Callable, Iterator
from struct import Struct

from tests.lies.lie import Known, Lie, Place, one_of

OFFSET_ENTRY = Struct(">ii")  # F-9.1: offset less the base, position
TIME_ENTRY = Struct(">qi")  # F-10.1: timestamp, offset less the base
TXN_ENTRY = Struct(">hqqqq")  # F-11.1: version, producer, first, last, last stable offset
Entries = list[list[int]]
Change = Callable[[Entries, random.Random], Entries | None]


def index_lies() -> Iterator[Lie]:
    for place, entry in (
        (Place.OFFSET_INDEX, OFFSET_ENTRY),
        (Place.TIME_INDEX, TIME_ENTRY),
        (Place.TXN_INDEX, TXN_ENTRY),
    ):
        for name, change in CHANGES[place].items():
            yield Lie(name, place, _of_entries(entry, change))
        yield Lie("the last byte is lost", place, lambda data, *_: data[:-1] or None)


def _of_entries(
    entry: Struct, change: Change
) -> Callable[[bytes, random.Random, Known], bytes | None]:
    def tell(data: bytes, chance: random.Random, _: Known) -> bytes | None:
        changed = change([list(fields) for fields in entry.iter_unpack(data)], chance)
        return None if changed is None else b"".join(entry.pack(*fields) for fields in changed)

    return tell


def _lost(entries: Entries, chance: random.Random) -> Entries | None:
    row = one_of(range(len(entries)), chance)
    return entries[:row] + entries[row + 1 :]


def _field(at: int, by: int) -> Change:
    def changed(entries: Entries, chance: random.Random) -> Entries | None:
        row = one_of(range(len(entries)), chance)
        entries[row][at] += by
        return entries if entries[row][at] >= 0 else None

    return changed


def _exchanged(entries: Entries, chance: random.Random) -> Entries | None:
    if len(entries) < 2:
        return None
    row = chance.randrange(len(entries) - 1)
    entries[row], entries[row + 1] = entries[row + 1], entries[row]
    return entries


CHANGES: dict[Place, dict[str, Change]] = {
    Place.OFFSET_INDEX: {
        "an entry is lost": _lost,
        "an entry with an offset too large": _field(0, 1),
        "an entry with an offset too small": _field(0, -1),
        "an entry with a position too large": _field(1, 1),
        "an entry with a position too small": _field(1, -1),
        "two entries are exchanged": _exchanged,
        "an entry that is none": lambda entries, _: [*entries, [2**30, 2**30]],
    },
    Place.TIME_INDEX: {
        "an entry is lost": _lost,
        "an entry with a timestamp too large": _field(0, 1),
        "an entry with a timestamp too small": _field(0, -1),
        "an entry with an offset too large": _field(1, 1),
        "an entry with an offset too small": _field(1, -1),
        "two entries are exchanged": _exchanged,
        "an entry that is none": lambda entries, _: [*entries, [2**60, 2**30]],
    },
    Place.TXN_INDEX: {
        "an entry is lost": _lost,
        "an entry of another producer": _field(1, 1),
        "an entry that begins too late": _field(2, 1),
        "an entry that begins too early": _field(2, -1),
        "an entry that ends too late": _field(3, 1),
        "an entry that ends too early": _field(3, -1),
        "an entry with a last stable offset too large": _field(4, 1),
        "an entry with a last stable offset too small": _field(4, -1),
        "two entries are exchanged": _exchanged,
        "an entry stands twice": lambda entries, _: [*entries, entries[-1]] if entries else None,
    },
}
