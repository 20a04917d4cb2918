"""Messages of old formats with damaged lengths, alone and in wrappers: spec L-3.6."""

from struct import pack
from zlib import crc32

from storage.codecs.compression import Codec, compress
from tests.engine.rules.case import NOW_MS, Case, Line, Seen
from tests.engine.rules.steps import (
    AS_FOLLOWER,
    CRASH,
    OPEN,
    TO_END,
    at_time,
    batches,
    config,
    fails,
    found,
    ok,
    opened,
    read,
    refused,
    result,
    state,
)

CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
KEY, NO_KEY = b"\0\0\0\1k", b"\xff\xff\xff\xff"  # each with its length
VALUE = b"\0\0\0\2vv"
SOUND = KEY + VALUE
LONG_VALUE = KEY + b"\1\0\0\2vv"


def message(magic: int, offset: int, fields: bytes, ts: int = NOW_MS, attributes: int = 0) -> bytes:
    """A message of format 0 or 1. fields: key and value, and their lengths."""
    time = pack(">q", ts) if magic else b""
    body = pack(">bb", magic, attributes) + time + fields
    return pack(">qiI", offset, 4 + len(body), crc32(body)) + body


def wrapper(magic: int, codec: Codec, inner: bytes, last_offset: int = 2) -> bytes:
    value = compress(codec, inner)
    fields = NO_KEY + pack(">i", len(value)) + value
    return message(magic, last_offset, fields, NOW_MS + 2, codec)


def with_second(magic: int, fields: bytes) -> bytes:
    """Three messages, of which the second has other fields."""
    return b"".join(message(magic, i, fields if i == 1 else SOUND, NOW_MS + i) for i in range(3))


def with_wrong_trailer(inner: bytes) -> bytes:
    """A gzip wrapper of format 1 whose value has a wrong checksum at its end."""
    value = bytearray(compress(Codec.GZIP, inner))
    value[-8] ^= 1
    return message(1, 2, NO_KEY + pack(">i", len(value)) + value, attributes=Codec.GZIP)


def append(data: bytes, **more: object) -> Line:
    return {"op": "append", "hex": data.hex(), **more}


def _life(magic: int, codec: Codec) -> Case:
    data = wrapper(magic, codec, with_second(magic, LONG_VALUE))
    second = found(1, NOW_MS + 1, None) if magic else result(None)
    return Case(
        "L-3.6, L-2.7, L-2.8, L-11.1",
        f"a value in a wrapper of format {magic} that is too long, by {codec.name.lower()}: its "
        "offset and time are found, and no leader takes it",
        config(index_interval_bytes=0),
        OPEN,
        append(data, **AS_FOLLOWER),
        state(log_end_offset=3, size=len(data)),
        TO_END,
        at_time(NOW_MS + 1),
        second,
        read(1),
        batches((0, 2, len(data))),
        append(data),
        fails("IllegalArgumentException"),
        state(log_end_offset=3, size=len(data)),
        CRASH,
        opened(clean=False),
        state(log_end_offset=3, size=len(data)),
        at_time(NOW_MS + 1),
        second,
        CRASH,
        opened(clean=True, high_watermark=1),
        state(log_end_offset=3, high_watermark=1),
        read(0),
        batches((0, 2, len(data))),
    )


def _told_to_a_leader(says: str, inner: bytes, *seen: Seen) -> Case:
    """seen: by a topic that deletes, and by one that is compacted."""
    deletes, compacted = seen
    data = append(wrapper(1, Codec.GZIP, inner))
    return Case(
        "L-3.6, L-13.4, L-13.9",
        says,
        OPEN,
        data,
        deletes,
        config(cleanup_policy="compact"),
        data,
        compacted,
    )


SHORT_HEAD = message(1, 0, SOUND) + pack(">qi", 1, 13) + bytes(13)
CASES = [
    *(_life(magic, codec) for magic in (0, 1) for codec in CODECS),
    _told_to_a_leader(
        "a key that is too long",
        with_second(1, b"\1\0\0\1k" + VALUE),
        fails("IllegalArgumentException"),
        fails("IllegalArgumentException"),
    ),
    _told_to_a_leader(
        "a key so long that no length of a value follows",
        with_second(1, b"\0\0\0\7k" + VALUE),
        fails("IndexOutOfBoundsException"),
        fails("IndexOutOfBoundsException"),
    ),
    _told_to_a_leader(
        "no room for the length of a key",
        with_second(1, b""),
        fails("IndexOutOfBoundsException"),
        fails("IndexOutOfBoundsException"),
    ),
    _told_to_a_leader(
        "every negative length of a key is that of none",
        with_second(1, b"\xff\xff\xff\xfb" + VALUE),
        result(last_offset=2),
        refused("InvalidRecordException", 1),
    ),
    _told_to_a_leader(
        "every negative length of a value is that of none, and a short one leaves bytes over",
        b"".join(
            message(1, i, KEY + value)
            for i, value in enumerate((b"\xff\xff\xff\xfbvv", b"\0\0\0\1vv", b"\0\0\0\0vv"))
        ),
        result(last_offset=2),
        ok(),
    ),
    _told_to_a_leader(
        "the checksum is looked at before any length",
        with_second(1, LONG_VALUE).replace(LONG_VALUE, b"\1\0\0\1k" + VALUE),
        fails("CorruptRecordException"),
        fails("CorruptRecordException"),
    ),
    _told_to_a_leader(
        "a message too short for its head",
        SHORT_HEAD,
        fails("CorruptRecordException"),
        fails("CorruptRecordException"),
    ),
    Case(
        "L-3.6, L-13.8",
        "of messages that are converted all keys and values are read before any other check",
        config(cleanup_policy="compact"),
        OPEN,
        append(message(1, 0, b"\xff\xff\xff\xfb" + VALUE) + message(1, 1, LONG_VALUE)),
        fails("IllegalArgumentException"),
        append(message(1, 0, LONG_VALUE), to_magic=1),
        result(last_offset=0),
        TO_END,
        at_time(NOW_MS),
        found(0, NOW_MS, None),
    ),
    Case(
        "L-13.10",
        "a wrapper of format 1 that does not begin at offset 0 is built anew",
        OPEN,
        append(wrapper(1, Codec.GZIP, with_second(1, LONG_VALUE)), to_magic=1),
        result(last_offset=2),
        append(wrapper(1, Codec.GZIP, with_second(1, LONG_VALUE), last_offset=5), to_magic=1),
        fails("IllegalArgumentException"),
        state(log_end_offset=3),
    ),
    Case(
        "L-3.6",
        "a gzip wrapper whose value ends too early",
        OPEN,
        append(
            message(
                1,
                2,
                NO_KEY + b"\0\0\0\x20" + compress(Codec.GZIP, with_second(1, SOUND)),
                attributes=1,
            )
        ),
        fails("KafkaException", "EOFException"),
    ),
    Case(
        "L-3.6",
        "of gzip the checksum is looked at behind the messages",
        OPEN,
        append(with_wrong_trailer(SHORT_HEAD)),
        fails("CorruptRecordException"),
        append(with_wrong_trailer(with_second(1, SOUND))),
        fails("KafkaException", "ZipException"),
        append(with_wrong_trailer(SHORT_HEAD), **AS_FOLLOWER),
        result(last_offset=2),
        TO_END,
        at_time(NOW_MS),
        fails("CorruptRecordException"),
    ),
    Case(
        "L-3.6",
        "a compressed message in a wrapper is told where it is reached",
        OPEN,
        append(
            wrapper(1, Codec.LZ4, with_second(1, SOUND) + message(1, 3, SOUND, NOW_MS + 3, 1), 3),
            **AS_FOLLOWER,
        ),
        TO_END,
        at_time(NOW_MS + 2),
        found(2, NOW_MS + 2, None),
    ),
]
