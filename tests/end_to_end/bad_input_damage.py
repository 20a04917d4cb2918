"""Every way to damage a log that these tests know, and what is to be said of it.

The log is the one of `bad_input_logs`: batches of two records, three a segment.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tests.end_to_end.bad_input_logs import (
    INDEX,
    LOG,
    batch_positions,
    patched,
    put,
)
from tests.support.reference_batch import sealed

HEADER_BYTES = 61
LEADER_EPOCH = range(12, 16)  # bytes of a batch that nothing covers (F-4.2)
CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

Change = Callable[[bytes], bytes]
Harm = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Damage:
    topic: str
    harm: Harm
    told: str  # a regular expression for the reason, behind the partition's path
    cleaned: bool = False  # nobody can tell


def all_damages(template: Path) -> list[Damage]:
    positions = batch_positions(template / LOG[0])
    return [
        *_cuts(positions),
        *_flips(positions),
        *_headers(positions),
        *_records(positions),
        *_tails(positions),
        *_transactions(positions),
        *_indexes(positions),
        *_listed(),
    ]


def _in_file(name: str, change: Change) -> Harm:
    return lambda partition: put(partition / name, change((partition / name).read_bytes()))


def _first(length: int) -> Change:
    return lambda data: data[:length]


def _with(position: int, other: bytes) -> Change:
    return lambda data: patched(data, position, other)


def _being(other: bytes) -> Change:
    return lambda _: other


def _and(tail: bytes) -> Change:
    return lambda data: data + tail


def _cuts(positions: list[int]) -> Iterator[Damage]:
    """The first segment cut short at every length; and the active one, seen by the plan."""
    for length in range(positions[-1]):
        start = max(position for position in positions if position <= length)
        told = rf"{LOG[0]}, byte {start}: a batch of \d+ bytes or more is cut short, "
        if length == start:  # only the index knows that there was more
            told = rf"{INDEX[0]}, byte \d+: entry .* is outside the log of {length} bytes"
        yield Damage(f"cut-{length}", _in_file(LOG[0], _first(length)), told)
    for length in range(positions[2] + 1, positions[3]):
        told = rf"({LOG[2]}|{INDEX[2]}), byte \d+: "
        yield Damage(f"cut-active-{length}", _in_file(LOG[2], _first(length)), told)


def _flips(positions: list[int]) -> Iterator[Damage]:
    """E-34: each bit of the second of three batches; its checksum does not fit any more."""
    first, second = positions[1], positions[2]
    for bit in range(8 * (second - first)):
        at = first + bit // 8

        def flip(data: bytes, at: int = at, bit: int = bit) -> bytes:
            return patched(data, at, bytes([data[at] ^ 1 << bit % 8]))

        told = rf"{LOG[0]}, byte ({first}|{second}): "
        yield Damage(
            f"flip-{bit}", _in_file(LOG[0], flip), told, cleaned=at - first in LEADER_EPOCH
        )


def _in_batch(positions: list[int], change: Change) -> Harm:
    """Change the second batch; its checksum fits afterwards."""
    start, end = positions[1:3]
    return _in_file(LOG[0], lambda d: d[:start] + sealed(change(d[start:end])) + d[end:])


def _headers(positions: list[int]) -> Iterator[Damage]:
    """Fields that cannot be, under checksums that fit."""
    byte = positions[1]
    for topic, at, data, told in (
        *((f"codec-{n}", 22, bytes([n]), f"codec {n} is not known") for n in (5, 6, 7)),
        *((f"payload-{n}", 22, bytes([n]), f"{name}") for n, name in CODECS.items()),
        ("magic-3", 16, b"\x03", "magic 3"),
        ("magic-negative", 16, b"\xff", "magic -1"),
        ("length-0", 8, bytes(4), "length 0"),
        ("length-negative", 8, b"\xff\xff\xff\xff", "length -1"),
        ("length-48", 8, b"\0\0\0\x30", "length 48"),
        ("length-huge", 8, b"\x7f\xff\xff\xff", "2147483659 bytes or more is cut short"),
        ("offset-negative", 0, b"\xff" * 8, "base offset -1 is not above"),
        ("offset-same", 0, bytes(8), "base offset 0 is not above"),
        ("offset-far", 0, b"\0\0\0\x0f" + bytes(4), "too far from the segment's base offset 0"),
        ("last-delta-negative", 23, b"\xff" * 4, "last offset delta -1"),
        ("last-delta-small", 23, bytes(4), "record 1"),
        ("count-negative", 57, b"\xff" * 4, "records count -1"),
        ("count-huge", 57, b"\x7f\xff\xff\xff", "records count 2147483647"),
        ("count-more", 57, b"\0\0\0\x03", "records count 3 is more than the batch has room for"),
        ("count-less", 57, b"\0\0\0\x01", "left over"),
    ):
        harm = _in_batch(positions, _with(at, data))
        yield Damage(topic, harm, rf"{LOG[0]}, byte {byte}: .*{re.escape(told)}")


def _records(positions: list[int]) -> Iterator[Damage]:
    """A record's varints: length, timestamp delta, offset delta, key length (F-5)."""
    for topic, at, data in (
        ("record-too-long", 0, b"\x7e"),
        ("record-negative", 0, b"\x01"),
        ("record-endless", 0, b"\xff" * 6),
        ("record-offset", 3, b"\x08"),
        ("key-too-long", 4, b"\x7e"),
    ):
        harm = _in_batch(positions, _with(HEADER_BYTES + at, data))
        yield Damage(topic, harm, rf"{LOG[0]}, byte {positions[1]}: .*record 0")


def _legacy(magic: int, offset: int) -> bytes:
    """A message of format v0 or v1: one key, one value (F-6)."""
    body = bytes([magic, 0]) + (bytes(8) if magic else b"") + b"\0\0\0\x01k\0\0\0\x01v"
    message = crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(message).to_bytes(4, "big") + message


def _tails(positions: list[int]) -> Iterator[Damage]:
    end = positions[-1]
    for topic, tail, told in (
        ("tail-zeros", bytes(100), "length 0"),
        ("tail-noise", b"\xa5" * 100, "length -1515870811"),
        ("tail-short", b"\0" * 7, "cut short"),
        ("legacy-v0", _legacy(0, 5), "base offset 5 is not above"),
        ("legacy-v1", _legacy(1, 6)[:-1] + b"w", "checksum"),
    ):
        harm = _in_file(LOG[0], _and(tail))
        yield Damage(topic, harm, rf"{LOG[0]}, byte {end}: .*{re.escape(told)}")
    only = _in_file(LOG[0], lambda _: _legacy(1, 0) + _legacy(1, 1)[:-1] + b"w")
    yield Damage("legacy-only", only, rf"{LOG[0]}, byte 36: checksum")

    def next_again(partition: Path) -> None:
        put(partition / LOG[1], (partition / LOG[0]).read_bytes())

    yield Damage(
        "segment-of-another", next_again, rf"{LOG[1]}, byte 0: .*base offset 0 is not above"
    )

    def last_batch_at(segment: int, offset: int) -> Harm:
        def harm(partition: Path) -> None:
            data = (partition / LOG[segment]).read_bytes()
            at = positions[2]
            put(partition / LOG[segment], patched(data, at, offset.to_bytes(8, "big")))
            put(partition / INDEX[segment], b"")  # it would tell

        return harm

    told = rf"{LOG[1]}, byte 0: offset 6 is not above 11, the last one before it"
    yield Damage("segments-overlap", last_batch_at(0, 10), told)
    told = rf"{LOG[1]}, byte \d+: offset 13 is not below 12, where the range to clean ends"
    yield Damage("above-the-range", last_batch_at(1, 12), told)


def _transactions(positions: list[int]) -> Iterator[Damage]:
    """Keys of one byte are none of a control record (F-6.1); an index says what cannot be."""
    told = "record 0 of the control batch has no version and type for a key"
    harm = _in_batch(positions, _with(22, b"\x30"))
    yield Damage("control-key", harm, rf"{LOG[0]}, byte {positions[1]}: {told}")
    name = LOG[1].replace(".log", ".txnindex")
    whole = _aborted(6, 7)
    for topic, data, at, told in (
        *((f"cut-{n}", whole[:n], 0, rf"entry has {n} of 34 bytes") for n in range(1, 34)),
        ("cut-second", whole * 2 + b"\0", 68, "entry has 1 of 34 bytes"),
        ("version", b"\0\1" + whole[2:], 0, "version 1, expected 0"),
        ("twice", whole * 2, 34, "last offset 7, expected 8 or more"),
        ("other-segment", _aborted(0, 5), 0, "last offset 5, expected 6 or more"),
        ("backwards", _aborted(8, 7), 0, "first offset 8 is past last offset 7"),
    ):
        told = rf"{name}, byte {at}: {told}"
        yield Damage(f"transaction-index-{topic}", _put(name, data), told)


def _put(name: str, data: bytes) -> Harm:
    return lambda partition: put(partition / name, data)


def _aborted(first_offset: int, last_offset: int) -> bytes:
    """A `.txnindex` entry of producer 7 (F-11.1)."""
    fields = 7, first_offset, last_offset, last_offset + 1
    return b"\0\0" + b"".join(field.to_bytes(8, "big") for field in fields)


def _entry(relative_offset: int, position: int) -> bytes:
    return relative_offset.to_bytes(4, "big") + position.to_bytes(4, "big")


def _indexes(positions: list[int]) -> Iterator[Damage]:
    """Sound ones have an entry for the second and the third batch."""
    second, third, end = positions[1:4]
    sound = _entry(3, second) + _entry(5, third)
    for topic, data, byte, told in (
        ("index-off-by-7", sound[:8] + _entry(5, third + 7), 8, "does not fit its log"),
        ("index-first-off", _entry(3, second - 1) + sound[8:], 0, "does not fit its log"),
        ("index-skips", _entry(1, second) + sound[8:], 0, "does not fit its log"),
        ("index-cut", sound[:-3], 8, "5 of 8 bytes"),
        ("index-not-ascending", sound + _entry(4, third + 1), 16, "does not ascend"),
        ("index-of-a-longer-log", sound + _entry(9, end), 16, "outside the log"),
        ("index-negative", _entry(3, second) + b"\xff" * 8, 8, "does not ascend"),
    ):
        harm = _in_file(INDEX[0], _being(data))
        yield Damage(topic, harm, rf"{INDEX[0]}, byte {byte}: .*{told}")
    told = rf"{INDEX[2]}, byte 16: .* does not lead to that batch"
    yield Damage("index-active", _in_file(INDEX[2], lambda d: d[:-1] + b"\x07"), told)


def _listed() -> Iterator[Damage]:
    """What the names in the directory say."""
    told = rf"{LOG[0]}.swap, byte 0: batch header has 4 of 61 bytes"  # E-72
    yield Damage("torn.swap", _in_new_file(f"{LOG[0]}.swap", b"torn"), told)
    told = "orders.log: a broker cannot load a log that has a file of this name"
    yield Damage("stray", _in_new_file("orders.log"), told)


def _in_new_file(name: str, data: bytes = b"") -> Harm:
    def harm(partition: Path) -> None:
        (partition / name).write_bytes(data)
        os.utime(partition / name, ns=(0, 0))

    return harm
