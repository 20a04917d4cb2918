"""Batches changed so that their sizes, counts and lengths lie, under checksums that fit."""

import gzip
from collections.abc import Callable, Sequence
from random import Random

from storage.codecs.compression import Codec, compress, decompress
from storage.codecs.lz4_frame import with_header_checksum
from storage.errors import LogCompactionError
from tests.damage.damaged_logs import resized
from tests.damage.lies import (
    FIELDS,
    INTS,
    LEGACY_CHECKED,
    NOISE,
    VARINTS,
    sealed_legacy,
)
from tests.support.reference_batch import CODEC_BITS, HEADER, sealed, varint

FAR = 1, 6, 7, 13, 64, 127, 128, 5000, 65_536, 1 << 20, 1 << 27, 2**31 - 1
MAX_PLAIN_BYTES = 1 << 20  # beyond, a batch is not taken apart


def lie(batches: Sequence[bytes], chance: Random) -> list[bytes]:
    """The batches of a log, one to three of them changed, or their order."""
    lying = list(batches)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(lying))
        raw = lying[at]
        lying[at] = _of_v2(raw, chance) if raw[16] == 2 else _of_legacy(raw, chance)
    if chance.random() < 0.05:
        at = chance.randrange(len(lying))
        lying.insert(chance.randrange(len(lying) + 1), lying.pop(at))
    return lying


def _of_v2(raw: bytes, chance: Random) -> bytes:
    way = chance.random()
    if way < 0.2 or len(raw) == HEADER.size:
        at = chance.choice(list(FIELDS))
        return sealed(_put(raw, at, chance.choice(FIELDS[at]))[: len(raw)])
    header, payload = raw[: HEADER.size], raw[HEADER.size :]
    codec = raw[22] & CODEC_BITS
    if (codec and way < 0.3) or codec > Codec.ZSTD:
        return resized(header + _overwritten(payload, chance, NOISE))
    try:
        plain = decompress(codec, payload, "", 0, MAX_PLAIN_BYTES)
    except LogCompactionError:  # changed before
        return raw
    if way < 0.8:
        plain = _with_other_lengths(plain, chance)
    else:
        plain = _stretched(_overwritten(plain, chance, VARINTS), chance)
    if chance.random() < 0.3:
        count = max(0, int.from_bytes(header[57:61], "big") + chance.choice((-2, -1, 1, 2, 40)))
        header = header[:57] + min(count, 2**31 - 1).to_bytes(4, "big")
    return resized(header + compress(Codec(codec), plain))


def _with_other_lengths(plain: bytes, chance: Random) -> bytes:
    """One length or count of one record lies; the lengths around it may go along with it."""
    places = _lengths(plain)
    if not places:
        return plain
    at, end, outer = chance.choice(places)
    value = chance.choice((len(plain) - end, chance.choice(FAR), -1, -chance.choice(FAR)))
    value += chance.choice((-2, -1, 0, 0, 0, 1, 2))
    told = varint(value)
    lying = plain[:at] + told + plain[end:]
    if outer is not None and chance.random() < 0.7:  # the record claims to have room for it
        start, behind = outer
        body = max(value, 0) + at - behind + len(told) + chance.choice((0, 1, 1, 2, 6))
        lying = plain[:start] + varint(body) + lying[behind:]
    if chance.random() < 0.5:
        lying = lying[: len(plain)].ljust(len(plain), b"\0")
    return lying


def _lengths(plain: bytes) -> list[tuple[int, int, tuple[int, int] | None]]:
    """Where each length or count stands, and where that of its record does."""
    places: list[tuple[int, int, tuple[int, int] | None]] = []
    at = 0
    try:
        while at < len(plain):
            length, body = _read(plain, at)
            outer = at, body
            places.append((at, body, None))
            _, inside = _read(plain, body + 1)  # timestamp delta
            _, inside = _read(plain, inside)
            for _ in range(2):
                inside = _through(plain, inside, outer, places)
            count, behind = _read(plain, inside)
            places.append((inside, behind, outer))
            for _ in range(2 * count):
                behind = _through(plain, behind, outer, places)
            at = body + length
            if length < 0:
                break
    except IndexError:  # changed before
        pass
    return places


def _through(
    plain: bytes,
    at: int,
    outer: tuple[int, int],
    places: list[tuple[int, int, tuple[int, int] | None]],
) -> int:
    length, behind = _read(plain, at)
    places.append((at, behind, outer))
    return behind + max(length, 0)


def _of_legacy(raw: bytes, chance: Random) -> bytes:
    value_at = (26 if raw[16] == 1 else 18) + 8  # of a wrapper, which has no key
    codec = Codec(raw[17] & 0x03)
    if codec and chance.random() < 0.6:
        try:
            packed = raw[value_at:]
            if codec is Codec.LZ4:
                packed = with_header_checksum(packed)
            plain = decompress(codec, packed, "", 0, MAX_PLAIN_BYTES)
        except LogCompactionError:
            return raw
        plain = _stretched(_overwritten(plain, chance, (*INTS, *NOISE)), chance)
        packed = gzip.compress(plain) if codec is Codec.GZIP else compress(codec, plain)
        raw = raw[: value_at - 4] + len(packed).to_bytes(4, "big") + packed
        return sealed_legacy(raw[:8] + (len(raw) - 12).to_bytes(4, "big") + raw[12:])
    lying = raw[:LEGACY_CHECKED] + _overwritten(raw[LEGACY_CHECKED:], chance, (*INTS, *NOISE))
    return sealed_legacy(lying)


def _overwritten(data: bytes, chance: Random, values: Sequence[bytes]) -> bytes:
    for _ in range(chance.choice((1, 1, 2, 4))):
        data = _put(data, chance.randrange(len(data) + 1), chance.choice(values))[: len(data)]
    return data


def _stretched(data: bytes, chance: Random) -> bytes:
    """As it is, cut short, or with some bytes more, or some twice."""
    ways: list[Callable[[], bytes]] = [
        lambda: data,
        lambda: data,
        lambda: data[: chance.randrange(len(data) + 1)],
        lambda: data + chance.randbytes(chance.randrange(1, 40)),
        lambda: data + data[chance.randrange(len(data) + 1) :],
    ]
    return chance.choice(ways)()


def _put(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def _read(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
