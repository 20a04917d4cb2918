"""Edge cases of message formats v0 and v1 (C-6.1, C-11.12, C-11.14, C-22)."""

from collections.abc import Iterator
from typing import Any

from storage.codecs.compression import Codec, compress
from storage.formats.record import Record as Message
from tests.golden.edge_records import ABC, TIMES, Case
from tests.golden.script import LONG_AGO_MS, Script
from tests.oracle.random_script import END_MS
from tests.support.legacy_writer import encode_message, encode_message_set

CODECS = ("none", "gzip", "snappy", "lz4")
STAMPED: dict[str, object] = {"message.timestamp.type": "LogAppendTime"}
AT_MS = END_MS - LONG_AGO_MS


def conversions() -> Iterator[Case]:
    """E-38, C-11.12: kept whole, first and last gone, tombstones, in every codec and format."""
    for magic in (0, 1):
        for codec in CODECS:
            fields: dict[str, Any] = {"magic": magic, "codec": codec}
            name = f"v{magic}-{codec}"
            whole = Script().append(*ABC, ago=TIMES, **fields).append(("d", ""), **fields)
            yield f"e38-all-kept-{name}", whole.active()
            edges = Script().append(*ABC, ("d", None), ago=[*TIMES, 4000], **fields)
            edges.append(("a", "9"), ("e", None), **fields).append(("d", "9"), ("a", "8"))
            yield f"c11.12-first-and-last-gone-{name}", edges.active()
            stamped = Script(STAMPED).append(*ABC, ("c", None), ago=[*TIMES, 5000], **fields)
            yield f"c11.12-log-append-time-{name}", stamped.append(("a", "2")).active()
            mixed = Script().append(*ABC, **fields).append(*ABC, ("d", None)).roll()
            mixed.append(("d", "1"), ("b", None), **fields)
            yield f"c11.12-mixed-with-v2-{name}", mixed.append(("e", "1")).active()
    beyond = Script().append(*ABC, magic=1).roll().append(*ABC, magic=1, codec="gzip").active()
    yield "c11.12-active-stays-legacy", beyond.append(("z", "1"), magic=1)


def tombstones() -> Iterator[Case]:
    """E-15, C-6.1: the clock of a tombstone that is still in its old form."""
    for magic in (0, 1):
        kept = Script().append(("t", None), ("b", "1"), magic=magic, codec="gzip")
        yield f"e15-tombstone-kept-v{magic}", kept.append(("c", "1")).active()
        for name, ago_ms in (("reached", 6000), ("not-reached", 5999)):
            old = Script().append(("t", None), magic=magic).append(("b", "1"), magic=magic).roll()
            old.append(("c", "1"), magic=magic).roll().append(("d", "1")).active()
            old.do("checkpoint", offset=3).mtime(0, ago_ms).mtime(2, 5000)
            yield f"c6.1-legacy-horizon-{name}-v{magic}", old


def odd_wrappers() -> Iterator[Case]:
    """E-35 (KAFKA-4298), F-7.5: other formats inside, offsets with gaps, offsets from nought."""
    first = encode_message(1, Message(0, AT_MS + 5, b"a", b"1"))
    second = encode_message(0, Message(2, -1, b"b", b"2"))
    third = encode_message(1, Message(3, AT_MS + 3, b"c", None))
    inner = first + second + third
    for attributes in (0x01, 0x09):
        outer = Message(3, AT_MS + 9, None, compress(Codec.GZIP, inner))
        raw = encode_message(1, outer, attributes)
        name = f"e35-v0-in-v1-{attributes:02x}"
        yield name, Script().append_raw(raw).append(("a", "2")).active()
        yield f"{name}-whole", Script().append_raw(raw).append(("d", "2")).active()
    raw = encode_message(0, Message(3, -1, None, compress(Codec.SNAPPY, inner)), 0x02)
    yield "e35-v1-in-v0", Script().append_raw(raw).append(("d", "2")).active()
    gaps = [Message(o, AT_MS + o, k, b"v") for o, k in ((4, b"a"), (7, b"b"), (9, b"a"))]
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.LZ4):
            raw = encode_message_set(magic, gaps, codec)
            script = Script().append_raw(raw).append(("d", "2")).active()
            yield f"f7.5-gaps-v{magic}-{codec.name.lower()}", script


def last_batches() -> Iterator[Case]:
    """E-39, C-11.14: the last batch of the range; Kafka's cleaner stops where it loses all."""
    for magic in (0, 1):
        for codec in ("none", "gzip"):
            fields: dict[str, Any] = {"magic": magic, "codec": codec}
            lost = Script().null_keys_allowed().append(*ABC, **fields)
            lost.append((None, "n"), **fields)
            yield f"e39-last-legacy-loses-all-v{magic}-{codec}", lost.active()
            part = Script().null_keys_allowed().append(("a", "1"), (None, "n"), **fields)
            yield f"e39-last-legacy-loses-some-v{magic}-{codec}", part.active()
