"""Sizes and counts that lie under checksums that fit: nothing but the parsers stands in the way.

A case packs its batch when it is tried, not when it is listed: a sample pays for what it takes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from zlib import crc32

from storage.codecs.compression import Codec, compress, decompress
from tests.damage.damaged_logs import Case, all_sound, log_files, resized
from tests.support.reference_batch import CODEC_BITS, HEADER, sealed, split

LONGS = tuple(
    value.to_bytes(8, "big", signed=True) for value in (0, -1, 1, 2**31 - 1, 2**63 - 1, -(2**63))
)
INTS = tuple(value.to_bytes(4, "big", signed=True) for value in (0, -1, 1, 2**31 - 1, -(2**31)))
SHORTS = (b"\0\0", b"\x7f\xff", b"\x80\x00", b"\xff\xff", b"\0\x07", b"\0\x30")
FIELDS = {  # of the header of a batch (F-4.1)
    0: LONGS,
    8: INTS,
    21: SHORTS,
    23: INTS,
    27: LONGS,
    35: LONGS,
    43: LONGS,
    51: SHORTS,
    53: INTS,
    57: (*INTS, b"\0\0\0\2", b"\0\0\0\3", b"\0\0\0\x40"),
}
VARINTS = (
    b"\x00",
    b"\x01",  # -1
    b"\x7e",
    b"\xfe\xff\xff\xff\x0f",  # 2^31 - 1
    b"\xff\xff\xff\xff\x0f",  # -2^31
    b"\xff" * 10,  # never ends
    b"\x80" * 9 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",  # 2^63 - 1
)
NOISE = (b"\x00", b"\x7f", b"\x80", b"\xff")
Made = Callable[[], bytes]
LEGACY_CRC, LEGACY_CHECKED = 12, 16  # F-7.1


def lies() -> Iterator[Case]:
    for source in all_sound():
        for name, data in log_files(source, ".log"):
            start = 0
            for raw in split(data):
                end = start + len(raw)
                for what, lying in _of_v2(raw) if raw[16] == 2 else _of_legacy(raw):
                    change = partial(_instead, start, end, lying)
                    yield Case(source, name, f"batch at {start}: {what}", change)
                start = end
            break  # what is behind the first segment is read by the same code


def _instead(start: int, end: int, lying: Made, data: bytes) -> bytes:
    return data[:start] + lying() + data[end:]


def _of_v2(raw: bytes) -> Iterator[tuple[str, Made]]:
    for at, values in FIELDS.items():
        for value in values:
            yield f"{value.hex()} at {at}", partial(_with_field, raw, at, value)
    codec, payload = raw[22] & CODEC_BITS, raw[HEADER.size :]
    records = decompress(codec, payload, "", 0)
    for at in range(len(records)):
        for value in VARINTS:
            lying = partial(_with_records, raw, records, at, value)
            yield f"{value.hex()} at {at} of the records", lying
    if codec:
        for at in range(len(payload)):
            for value in NOISE:
                lying = partial(_with_payload, raw, at, value)
                yield f"{value.hex()} at {at} of the payload", lying


def _with_field(raw: bytes, at: int, value: bytes) -> bytes:
    return sealed(_put(raw, at, value))


def _with_records(raw: bytes, records: bytes, at: int, value: bytes) -> bytes:
    packed = compress(Codec(raw[22] & CODEC_BITS), _put(records, at, value)[: len(records)])
    return resized(raw[: HEADER.size] + packed)


def _with_payload(raw: bytes, at: int, value: bytes) -> bytes:
    return resized(raw[: HEADER.size] + _put(raw[HEADER.size :], at, value))


def _of_legacy(raw: bytes) -> Iterator[tuple[str, Made]]:
    for at in range(LEGACY_CHECKED, len(raw)):
        for value in (*INTS, *NOISE):
            yield f"{value.hex()} at {at}", partial(_with_legacy_field, raw, at, value)
    codec = raw[17] & CODEC_BITS
    value_at = (26 if raw[16] == 1 else 18) + 8  # wrappers have no key
    if codec in (Codec.GZIP, Codec.SNAPPY):
        messages = decompress(codec, raw[value_at:], "", 0)
        size = len(messages)
        for at in range(size):
            for value in INTS:
                lying = partial(_with_messages, raw, value_at, _put(messages, at, value)[:size])
                yield f"{value.hex()} at {at} of the messages", lying


def _with_legacy_field(raw: bytes, at: int, value: bytes) -> bytes:
    return sealed_legacy(_put(raw, at, value)[: len(raw)])


def _with_messages(raw: bytes, value_at: int, messages: bytes) -> bytes:
    packed = compress(Codec(raw[17] & CODEC_BITS), messages)
    lying = raw[: value_at - 4] + len(packed).to_bytes(4, "big") + packed
    return sealed_legacy(lying[:8] + (len(lying) - 12).to_bytes(4, "big") + lying[12:])


def sealed_legacy(raw: bytes) -> bytes:
    checksum = crc32(raw[LEGACY_CHECKED:]).to_bytes(4, "big")
    return raw[:LEGACY_CRC] + checksum + raw[LEGACY_CHECKED:]


def _put(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]
