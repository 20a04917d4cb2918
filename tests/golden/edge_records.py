"""Edge cases of keys, values and batches (C-10, C-11, C-22.1, C-22.2)."""

from collections.abc import Iterator
from typing import Any

from storage.codecs.compression import Codec, compress
from storage.formats.record import Record as Message
from tests.golden.script import LONG_AGO_MS, Record, Script, raw_batch, raw_batch_of
from tests.oracle.random_script import END_MS
from tests.support.legacy_writer import encode_message
from tests.support.reference_batch import (
    HORIZON,
    LOG_APPEND_TIME,
    ReferenceBatch,
    ReferenceRecord,
    encode_parts,
    encode_record,
)

Case = tuple[str, Script]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LAST_MS = 9223372036854775807
ABC: tuple[Record, ...] = (("a", "1"), ("b", "2"), ("c", "3"))
TIMES = [3000, 1000, 2000]  # before END_MS: the middle one is the newest
HEADERS = [["h", "x"], ["", None], ["é\U0001f600", ""], ["h", "again"]]


def keys_and_values() -> Iterator[Case]:
    """E-1 to E-14."""
    null = Script().null_keys_allowed().append(("a", "1"), (None, "n"), (None, None), ("b", "2"))
    yield "e01-null-keys", null.append((None, "n")).append(("c", "3")).active()
    only = Script().null_keys_allowed().append((None, "n"), (None, "m")).append((None, None))
    yield "e01-null-keys-only", only.active()
    yield "e03-zero-length-key", Script().append(("", "1"), ("a", "1")).append(("", "2")).active()
    values = Script().append(("a", "1"), ("b", "2")).append(("a", ""), ("c", ""))
    yield "e04-zero-length-value", values.active()
    yield "e06-same-key-twice", Script().append(("a", "1"), ("b", "1"), ("a", "2")).active()
    revived = Script().append(("a", None), ("b", "1")).append(("a", "2"))
    yield "e07-tombstone-then-value", revived.active()
    died = Script().append(("a", "1"), ("b", "1")).append(("a", None), ("c", "1"))
    yield "e08-value-then-tombstone", died.active()
    for name, ago_ms in (("e09-horizon-not-reached", 999), ("e10-horizon-reached", 1000)):
        script = Script().append(("a", None), ("b", "1"), ("c", "1")).roll().clean(ago_ms)
        yield name, script.append(("d", "1")).active()
        alone = Script().append(("a", None)).append(("b", "1")).roll().clean(ago_ms)
        yield f"{name}-alone-in-batch", alone.append(("d", "1")).active()
    old = Script().append(("a", None), ("b", "1")).roll().append(("c", "1")).active()
    yield "e11-clean-tombstone-without-horizon", old.do("checkpoint", offset=2)
    none = Script({"delete.retention.ms": 0}).append(("a", None), ("b", "1"))
    yield "e12-no-retention-first-round", none.active()
    again = Script({"delete.retention.ms": 0}).append(("a", None), ("b", "1")).roll().clean(0)
    yield "e12-no-retention-second-round", again.append(("c", "1")).active()
    clean = Script().append(("a", "1"), ("b", "1")).roll().clean(5000).append(("b", "2"))
    yield "e13-key-only-in-clean-part", clean.active()
    started = Script().append(*ABC).append(*ABC).do("log_start", offset=2).append(("a", "9"))
    yield "e14-log-start-in-mid-segment", started.active()
    below = Script().append(*ABC).roll().append(*ABC).roll().do("log_start", offset=5)
    yield "c6.4-segment-below-log-start", below.append(("a", "9")).active()


def rebuilt_batches() -> Iterator[Case]:
    """E-20 to E-26, E-31 and C-11.10, C-11.11 for every codec."""
    for codec in CODECS:
        kept = Script().append(*ABC, codec=codec).append(("d", ""), codec=codec)
        yield f"e20-all-kept-{codec}", kept.active()
        tombstone = Script().append(*ABC, ("d", None), ago=[*TIMES, 4000], codec=codec)
        yield f"e21-tombstone-all-kept-{codec}", tombstone.active()
        first = Script().append(*ABC, ago=TIMES, codec=codec).append(("a", "2"), codec=codec)
        yield f"e23-first-dropped-{codec}", first.active()
        last = Script().append(*ABC, ago=TIMES, codec=codec).append(("c", "2"), codec=codec)
        yield f"e24-last-dropped-{codec}", last.active()
        newest = Script().append(*ABC, ago=TIMES, codec=codec).append(("b", "2"), codec=codec)
        yield f"e25-newest-dropped-{codec}", newest.active()
        yield f"e22-horizon-kept-{codec}", _superseded_beside_horizon(codec)
        yield f"c11.7-horizon-outlives-tombstone-{codec}", _tombstone_gone(codec)
        yield f"e26-log-append-time-{codec}", _log_append_time(codec)
        headers = [{"k": key, "v": "1", "h": HEADERS} for key in "abc"]
        script = Script().append_lines(headers, codec=codec).append(("b", "2"))
        yield f"c11.11-headers-{codec}", script.active()
    for codec, level in (("gzip", 9), ("gzip", 1), ("lz4", 12), ("lz4", 1), ("zstd", 15)):
        filled = _filled(Script(), codec, 30, 200, level=level)
        yield f"e31-level-{codec}-{level}", filled.active()


def _superseded_beside_horizon(codec: str) -> Script:
    script = Script().append(*ABC, ("d", None), codec=codec).roll().clean(500)
    return script.append(("b", "2"), codec=codec).active()


def _tombstone_gone(codec: str) -> Script:
    script = Script().append(*ABC, ("d", None), ago=[*TIMES, 500], codec=codec).roll().clean(1000)
    return script.append(("e", "2"), codec=codec).active()


def _log_append_time(codec: str) -> Script:
    """The leader sets the type; a follower takes it as it comes."""
    script = Script({"message.timestamp.type": "LogAppendTime"})
    script.append(*ABC, ago=TIMES, codec=codec).at(5000).append(*ABC, ("d", None), codec=codec)
    script.append(("c", "4"), codec=codec)
    fields: dict[str, Any] = {"codec": codec, "log_append_time": True}
    script.append(("e", "1"), ("f", "1"), ("g", "1"), offsets=[20, 25, 31], **fields)
    return script.append(("f", "2"), offsets=[40], **fields).active()


def _filled(script: Script, codec: str, records: int, value_bytes: int, **fields: Any) -> Script:
    """Three batches; with as many keys as records in a batch the first lose most of theirs."""
    usual = {"keys": records, "entropy": 0.1, "tombstones": 0.02, "seed": len(codec)}
    sizes = {"batches": 3, "records": records, "value_bytes": value_bytes, "codec": codec}
    return script.fill(**sizes, **(usual | fields))


def large_batches() -> Iterator[Case]:
    """E-33, and codecs whose output is more than one block or frame (F-8)."""
    for codec in CODECS:
        filled = _filled(Script(), codec, 220, 1000, keys=1500).active()
        yield f"f8-many-blocks-{codec}", filled
    big = Script({"segment.bytes": 4 << 20})
    big.fill(batches=1, records=90, keys=70, value_bytes=10_000, entropy=0.0, codec="none")
    yield "e33-larger-than-the-io-buffer", big.append(("a", "1")).active()
    long = Script().append(("k" * 9000, "v" * 70_000), ("k" * 9000, "w"), ("b", "1"))
    yield "long-keys-and-values", long.append(("b", "2")).active()
    yield "many-records", _filled(Script(), "none", 1500, 3).active()


def horizons() -> Iterator[Case]:
    """C-11.7 to C-11.9: set once, kept, overflowing, in an empty batch."""
    limit = LAST_MS - END_MS
    for name, retention_ms in (("not-over", limit), ("over", limit + 1), ("far-over", LAST_MS)):
        script = Script({"delete.retention.ms": retention_ms})
        yield f"c11.8-horizon-{name}", script.append(("a", None), ("b", "1")).active()
    thrice = Script().append(("a", None), ("b", "1"), codec="lz4").roll().clean(2000)
    thrice.append(("c", "1")).roll().clean(1001).append(("d", "1"))
    yield "c11.7-third-round", thrice.active()
    empty = Script().append(("a", "1")).append(("b", None)).roll().clean(3000)
    yield "c11.9-last-batch-expired-tombstone", empty.active().do("checkpoint", offset=0)
    gaps = Script().append(("a", None), ("b", "1"), offsets=[0, 7], codec="gzip")
    yield "c11.10-gaps-in-batch", gaps.append(("b", "2"), ("c", None), offsets=[9, 12]).active()
    ends = Script().append(*ABC).append(("a", "2"), ("c", "2")).roll().clean(4000)
    yield "c11.10-gaps-at-both-ends", ends.append(("b", None)).active()
    epochs = Script().append(*ABC, leader_epoch=3).append(("a", "2"), leader_epoch=5)
    yield "c11.10-leader-epochs", epochs.active(leader_epoch=9)


def odd_batches() -> Iterator[Case]:
    """E-32, E-36, and what no current producer writes but Kafka's reader takes (run Q)."""
    pair: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"b", b"2")]
    for name, key in (("copied", "z"), ("rebuilt", "a")):
        unknown = Script().append_raw(raw_batch(0, pair, 0x8180 - (1 << 16)))
        yield f"e32-unknown-attribute-bits-{name}", unknown.append((key, "9")).active()
        yield f"c11.11-malformed-header-key-{name}", _malformed_header(key)
        yield f"c11.11-long-varints-{name}", _long_varints(key)
        late = raw_batch(0, pair, LOG_APPEND_TIME, max_timestamp=END_MS - 5)
        script = Script().append_raw(late).append((key, "9"))
        yield f"e26-deltas-under-log-append-time-{name}", script.active()
    dead: list[tuple[bytes, bytes | None]] = [(b"a", None), (b"b", b"2")]
    minus = [ReferenceRecord(i, -1, *record) for i, record in enumerate(dead)]
    script = Script().append_raw(raw_batch_of(0, minus, attributes=HORIZON))
    yield "e36-horizon-of-minus-one", script.append(("c", "9")).active()
    untimed = [{"k": key, "v": value, "ts": -1} for key, value in (("a", "1"), ("b", None))]
    script = Script().append_lines(untimed).append(("a", "2"))
    yield "c11.10-no-timestamps", script.active()
    padded = raw_batch(0, pair, last_offset=9)
    yield "c11.10-last-offset-kept", Script().append_raw(padded).append(("b", "3")).active()
    holder = raw_batch_of(5, [], last_offset=8, max_timestamp=END_MS - 5)
    script = Script().append(("a", "1")).append_raw(holder)
    yield "c10.6-empty-batch-removed", script.append(("b", "1"), offsets=[9]).active()
    script = Script().append(("a", "1")).append_raw(holder)
    yield "c10.5-empty-batch-last", script.active()


def refused_batches() -> Iterator[Case]:
    """C-11.14: sound, but Kafka's builder refuses to write it again, so that its cleaner stops."""
    keys = (b"a", b"b", b"c", b"d")
    for name, times in (("all", (-5, -5, -7, -5)), ("some", (100, -(2**40), 3, -1))):
        made = [
            ReferenceRecord(i, *pair, b"1") for i, pair in enumerate(zip(times, keys, strict=True))
        ]
        latest = max(-1, *times)
        for codec in (Codec.NONE, Codec.ZSTD):
            batch = ReferenceBatch(0, 3, 0, codec, times[0], latest, records=tuple(made))
            encoded = compress(codec, b"".join(encode_record(r, 0, times[0]) for r in made))
            script = Script().append_raw(encode_parts(batch, encoded)).append(("b", "2"))
            yield f"c11.14-{name}-negative-{codec.name.lower()}", script.active()
    old = b"".join(encode_message(1, Message(i, -5 - i, key, b"1")) for i, key in enumerate(keys))
    yield "c11.14-negative-v1", Script().append_raw(old).append(("b", "2")).active()
    fields = {"producer_id": 7, "producer_epoch": -1, "base_sequence": 0}
    made = [ReferenceRecord(i, 100, key, b"1") for i, key in enumerate(keys)]
    script = Script().append_raw(raw_batch_of(0, made, **fields)).append(("b", "2"))
    yield "c11.14-no-producer-epoch", script.active()


def _malformed_header(superseding_key: str) -> Script:
    start_ms = END_MS - LONG_AGO_MS
    headers = ((b"\xff1", b"x"), (b"", None), (b"\xc3\x28\xe2\x82", b""))
    records = [
        ReferenceRecord(i, start_ms, key, b"1", headers) for i, key in enumerate((b"a", b"b"))
    ]
    return Script().append_raw(raw_batch_of(0, records)).append((superseding_key, "9")).active()


def _long_varints(superseding_key: str) -> Script:
    """Key lengths in two bytes where one would do; the record is one byte longer for it."""
    start_ms = END_MS - LONG_AGO_MS
    records = [ReferenceRecord(i, start_ms, key, b"1") for i, key in enumerate((b"a", b"b"))]
    parts = []
    for record in records:
        shortest = encode_record(record, 0, start_ms)
        length, rest, key_length, more = shortest[0], shortest[1:4], shortest[4], shortest[5:]
        parts.append(bytes([length + 2]) + rest + bytes([key_length | 0x80, 0]) + more)
    raw = raw_batch_of(0, records, encoded=b"".join(parts))
    return Script().append_raw(raw).append((superseding_key, "9")).active()
