"""Losses that are planted in a log: of records that readers of the latest state have, no others.

Read by the slow reference alone (`tests/support/reference_batch`). The indexes of a segment that is
changed go with it, as a broker would make them anew: only the loss itself is there to be found.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from storage.codecs.compression import Codec, compress
from storage.file_names import INDEX, LOG, TIME_INDEX
from storage.formats import checkpoint
from tests.support.reference_batch import (
    CODEC_BITS,
    HEADER,
    ReferenceBatch,
    decode,
    encode_parts,
    split,
)
from tests.support.reference_batch import encode as encode_plain


class Place(NamedTuple):
    """A batch of a log."""

    path: Path  # of its .log
    number: int
    raw: bytes
    batch: ReferenceBatch

    @property
    def last_offset(self) -> int:
        return self.batch.last_offset


class SoughtLog(NamedTuple):
    """A log in which a loss is to be planted, and what must be there."""

    path: Path
    places: Sequence[Place]
    latest: dict[int, Place]  # offset of the latest record of each key with a value

    @property
    def targets(self) -> list[tuple[int, Place]]:
        return sorted(self.latest.items())


def sought(path: Path, name: str, end_before: int) -> SoughtLog:
    """A log with its latest records: with a value, of no transaction, visible, and in the copy.

    end_before: where the log of the copy ends.
    """
    start = checkpoint.read(str(path.parent / checkpoint.LOG_START)).get((name, 0), 0)
    places = list(_places(path))
    latest: dict[bytes, tuple[int, Place] | None] = {}
    for place in places:
        if place.batch.is_control:
            continue
        for record in place.batch.records:
            may_count = not place.batch.attributes & 0x10 and record.offset >= start
            if record.key is not None:
                is_value = record.value is not None and may_count
                latest[record.key] = (record.offset, place) if is_value else None
    found = dict(each for each in latest.values() if each is not None)
    return SoughtLog(path, places, {o: place for o, place in found.items() if o < end_before})


def _places(path: Path) -> Iterator[Place]:
    for log in sorted(path.glob(f"*{LOG}")):
        for number, raw in enumerate(split(log.read_bytes())):
            yield Place(log, number, raw, decode(raw))


Plant = Callable[[SoughtLog, random.Random], str | None]  # what was lost, in words; None: it cannot


def a_record(log: SoughtLog, chance: random.Random) -> str | None:
    """One record goes, its batch stays if it has others."""
    offset, place = chance.choice(log.targets)
    kept = tuple(record for record in place.batch.records if record.offset != offset)
    if not kept:
        return a_batch(log, chance)
    _rewrite(place, encode(replace(place.batch, records=kept)))
    return f"the record at offset {offset}"


def a_batch(log: SoughtLog, chance: random.Random) -> str | None:
    offset, place = chance.choice(log.targets)
    _rewrite(place, b"")
    return f"the batch with offset {offset}"


def the_tail(log: SoughtLog, chance: random.Random) -> str | None:
    """The log ends earlier, where the last of the latest records was, or before."""
    offset, place = chance.choice(log.targets[-3:])
    for path in log.path.glob(f"*{LOG}"):
        if path > place.path:
            _remove_segment(path)
    raw = list(split(place.path.read_bytes()))
    _write(place.path, b"".join(raw[: place.number]))
    return f"everything from offset {offset} on"


def a_segment(log: SoughtLog, chance: random.Random) -> str | None:
    _, place = chance.choice(log.targets)
    if len(list(log.path.glob(f"*{LOG}"))) == 1:
        return None
    _remove_segment(place.path)
    return f"the segment {place.path.name}"


def all_segments(log: SoughtLog, _: random.Random) -> str | None:
    for path in log.path.glob(f"*{LOG}"):
        _remove_segment(path)
    return "all segments"


def a_key(log: SoughtLog, chance: random.Random) -> str | None:
    """All records of a key."""
    offset, place = chance.choice(log.targets)
    key = next(r.key for r in place.batch.records if r.offset == offset)
    for path in {each.path for each in log.places}:
        batches = [each for each in log.places if each.path == path]
        _write(path, b"".join(_without(each, key) for each in batches))
    return f"key {key!r}, latest at offset {offset}"


def an_old_value(log: SoughtLog, chance: random.Random) -> str | None:
    """The value of another time is under the offset of the latest."""
    offset, place = chance.choice(log.targets)
    records = tuple(
        replace(record, value=b"old") if record.offset == offset else record
        for record in place.batch.records
    )
    _rewrite(place, encode(replace(place.batch, records=records)))
    return f"the value at offset {offset}"


KINDS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (a_record, a_batch, the_tail, a_segment, all_segments, a_key, an_old_value)
}


def _without(place: Place, key: bytes | None) -> bytes:
    kept = tuple(record for record in place.batch.records if record.key != key)
    if place.batch.is_control or len(kept) == len(place.batch.records):
        return place.raw
    return encode(replace(place.batch, records=kept)) if kept else b""


def encode(batch: ReferenceBatch) -> bytes:
    """The bytes of a batch, compressed as it says."""
    codec = Codec(batch.attributes & CODEC_BITS)
    return encode_parts(batch, compress(codec, encode_plain(batch)[HEADER.size :]))


def _rewrite(place: Place, made: bytes) -> None:
    raw = list(split(place.path.read_bytes()))
    raw[place.number] = made
    _write(place.path, b"".join(raw))


def _write(path: Path, data: bytes) -> None:
    path.unlink()  # it may be a link
    path.write_bytes(data)
    _remove_indexes(path)


def _remove_segment(path: Path) -> None:
    path.unlink()
    _remove_indexes(path)


def _remove_indexes(path: Path) -> None:
    for suffix in (INDEX, TIME_INDEX):
        path.with_suffix(suffix).unlink(missing_ok=True)
