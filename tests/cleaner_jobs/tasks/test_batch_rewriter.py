"""Batches in, cleaned batches out: golden bytes of Kafka, odd forms, all codecs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.kernels.kept_batches import KeptBatches
from cleaner_jobs.tasks import batch_rewriter
from cleaner_jobs.tasks.batch_rewriter import BatchRewriter, CleaningRules
from cleaner_jobs.tasks.window_reader import WindowReader
from storage.codecs.compression import Codec, compress
from storage.errors import CorruptFileError
from storage.formats.batch_columns import EXPIRED, KEEP, SUPERSEDED, TOMBSTONE
from storage.formats.batch_windows import Buffers
from tests.storage.kafka_batches import EMPTIED_ABORT, EMPTIED_ZSTD
from tests.support.made_log import batch, keyed, packed, record
from tests.support.reference_batch import (
    CONTROL,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    ReferenceBatch,
    ReferenceRecord,
    decode,
    encode,
    encode_parts,
    encode_record,
    split,
)
from tests.support.worked_example import (
    AFTER_ROUND_1,
    AFTER_ROUND_2,
    SOURCE,
    VARIANT_AFTER_ROUND_1,
)

GONE = SUPERSEDED
NO_HORIZON = -1
NOW_MS = 10000
ALL_KEPT = KeptBatches.of(0, ())


class Sink:
    def __init__(self) -> None:
        self.data, self.writes = b"", 0

    def write(self, data: memoryview) -> int:
        self.data += bytes(data)
        self.writes += 1
        return len(data)


def rewritten(
    root: Path,
    batches: Sequence[bytes],
    states: Sequence[int],
    horizon_ms: int = NO_HORIZON,
    kept_batches: KeptBatches = ALL_KEPT,
) -> tuple[bytes, BatchRewriter]:
    path = root / "source.log"
    path.write_bytes(b"".join(batches))
    buffers, sink = Buffers(), Sink()
    rewriter = BatchRewriter(CleaningRules(kept_batches, NOW_MS, horizon_ms), sink, buffers)
    with WindowReader(str(path), 0, buffers) as reader:
        (window,) = reader.windows(0, path.stat().st_size)
        rewriter.rewrite(window, np.array(states, np.uint8))
    assert rewriter.finish() == len(sink.data)
    return sink.data, rewriter


def rebuilt(root: Path, raw: bytes, states: Sequence[int], horizon_ms: int = NO_HORIZON) -> bytes:
    return rewritten(root, [raw], states, horizon_ms)[0]


VARIANT_SOURCE = encode(
    batch(
        ReferenceRecord(0, 100, b"a", b"1"),
        ReferenceRecord(1, 200, b"b", b"2"),
        ReferenceRecord(2, 300, b"a", b"9"),
        ReferenceRecord(3, 400, b"c", b"3"),
    )
)


@pytest.mark.parametrize(
    ("raw", "states", "expected"),
    [
        (SOURCE, [GONE, KEEP, TOMBSTONE, KEEP], AFTER_ROUND_1),
        (AFTER_ROUND_1, [KEEP, TOMBSTONE | EXPIRED, KEEP], AFTER_ROUND_2),
        (VARIANT_SOURCE, [GONE, KEEP, KEEP, KEEP], VARIANT_AFTER_ROUND_1),
        (AFTER_ROUND_1, [KEEP, TOMBSTONE, KEEP], AFTER_ROUND_1),  # E-9
    ],
    ids=["round 1", "round 2", "variant", "before the horizon"],
)
def test_the_worked_example_to_the_byte(
    tmp_path: Path, raw: bytes, states: list[int], expected: bytes
) -> None:
    """C-11.6 to C-11.10."""
    assert rebuilt(tmp_path, raw, states, horizon_ms=11000) == expected


ZSTD_OF_PRODUCER_7 = packed(
    ReferenceBatch(2, 3, 3, 0, 110, 130, 7, 0, 2, (record(2, b"a"), record(3, b"b"))), Codec.ZSTD
)
ABORT_OF_PRODUCER_1 = encode(
    ReferenceBatch(
        1, 1, 0, CONTROL | TRANSACTIONAL | HORIZON, 9, 120, 1, 1, -1,
        (ReferenceRecord(1, 120, b"\0\0\0\0", b"\0\0\0\0\0\0"),),
    )
)  # fmt: skip


def test_an_emptied_batch_to_the_byte(tmp_path: Path) -> None:
    """C-11.9: codec and horizon bits go, the others stay."""
    kept = KeptBatches.of(4, ())
    assert rewritten(tmp_path, [ZSTD_OF_PRODUCER_7], [GONE, GONE], 11000, kept)[0] == EMPTIED_ZSTD
    kept = KeptBatches.of(2, ())
    assert rewritten(tmp_path, [ABORT_OF_PRODUCER_1], [GONE], 11000, kept)[0] == EMPTIED_ABORT
    again, rewriter = rewritten(tmp_path, [EMPTIED_ABORT], [], 11000, kept)
    assert again == EMPTIED_ABORT
    assert (rewriter.counts.emptied, rewriter.counts.kept, rewriter.counts.rebuilt) == (1, 1, 0)


def test_unknown_bits_stay_in_a_copy_and_go_from_the_rest(tmp_path: Path) -> None:
    """C-11.13, E-32."""
    raw = encode(replace(keyed(0, "ab"), attributes=0x0180))
    assert rebuilt(tmp_path, raw, [KEEP, KEEP]) == raw
    assert decode(rebuilt(tmp_path, raw, [GONE, KEEP])).attributes == 0
    kept = KeptBatches.of(2, ())
    emptied, _ = rewritten(tmp_path, [raw], [GONE, GONE], kept_batches=kept)
    assert decode(emptied).attributes == 0


@pytest.mark.parametrize("headers", [(), (("é".encode(), b"1"),)], ids=["plain", "by field"])
def test_a_negative_horizon_is_not_kept(
    tmp_path: Path, headers: tuple[tuple[bytes, bytes | None], ...]
) -> None:
    """E-36, run Q: attributes 0, base and max timestamp -1."""
    source = batch(
        ReferenceRecord(0, -1, b"a", None),
        ReferenceRecord(1, -1, b"b", b"1", headers),
        attributes=HORIZON,
        base_timestamp=-1,
        max_timestamp=-1,
    )
    found = decode(rebuilt(tmp_path, encode(source), [EXPIRED | TOMBSTONE, KEEP], 11000))
    assert found == replace(source, attributes=0, records=source.records[1:])


@pytest.mark.parametrize("codec", list(Codec))
def test_log_append_time_is_that_of_every_record(tmp_path: Path, codec: Codec) -> None:
    """C-11.11 a, E-26: deltas of 0, or from the horizon to the time."""
    source = batch(
        record(0, b"a"),
        record(1, b"b", None),
        record(5, b"c"),
        attributes=LOG_APPEND_TIME,
        max_timestamp=7777,
    )
    found = decode(rebuilt(tmp_path, packed(source, codec), [KEEP, GONE, KEEP]))
    assert (found.base_timestamp, found.max_timestamp) == (7777, 7777)
    assert [(r.offset, r.timestamp) for r in found.records] == [(0, 7777), (5, 7777)]
    again = rebuilt(tmp_path, packed(source, codec), [KEEP, TOMBSTONE, KEEP], 11000)
    assert decode(again).base_timestamp == 11000
    assert {r.timestamp for r in decode(again).records} == {7777}
    assert decode(again).attributes == LOG_APPEND_TIME | HORIZON | codec


def test_the_time_of_the_first_kept_record_is_the_base(tmp_path: Path) -> None:
    """E-23 to E-25: -1 where it has none; the largest kept is the maximum."""
    times = [500, -1, 300, 900]
    source = batch(*(record(i, b"k", timestamp=time) for i, time in enumerate(times)))
    found = decode(rebuilt(tmp_path, encode(source), [GONE, KEEP, KEEP, GONE]))
    assert (found.base_timestamp, found.max_timestamp) == (-1, 300)
    assert (found.base_offset, found.last_offset) == (0, 3)


# Forms that Kafka reads and never writes: such batches are rebuilt by field.

HEADERS = ((b"\xff1", b"x"), (b"", None), ("é".encode(), b""))


@pytest.mark.parametrize("codec", list(Codec))
def test_header_keys_beyond_ascii_go_through_java(tmp_path: Path, codec: Codec) -> None:
    """C-11.11 b: bytes ff 31 come back as ef bf bd 31; order, empty and null values stay."""
    source = batch(replace(record(0, b"a"), headers=HEADERS), record(1, b"b"), record(2, b"c"))
    found = decode(rebuilt(tmp_path, packed(source, codec), [KEEP, GONE, KEEP]))
    assert found.records[0].headers == ((b"\xef\xbf\xbd1", b"x"), *HEADERS[1:])
    assert found.records[0].key == b"a"
    copied = rebuilt(tmp_path, packed(source, codec), [KEEP, KEEP, KEEP])
    assert copied == packed(source, codec)


@pytest.mark.parametrize("key", [b"\x80", b"k\x80", b"\xc3", b"\xc3(", b"\xf5k"])
def test_no_byte_beyond_ascii_passes_for_one_that_kafka_leaves(tmp_path: Path, key: bytes) -> None:
    source = batch(replace(record(0, b"a"), headers=((key, None),)), record(1, b"b"))
    ((written, _),) = decode(rebuilt(tmp_path, encode(source), [KEEP, GONE])).records[0].headers
    assert "\ufffd" in written.decode()


KINDS = [
    "length",
    "timestamp delta",
    "offset delta",
    "key length",
    "value length",
    "headers count",
    "header key length",
    "header value length",
    "null key length",
    "null value length",
    "null header value length",
]


def longer(number: int, is_long: bool) -> bytes:
    """A varint in two bytes where one would do."""
    zigzag = number << 1 ^ number >> 63
    assert zigzag < 0x80
    return bytes([zigzag | 0x80, 0]) if is_long else bytes([zigzag])


def odd_record(kind: str) -> bytes:
    """Offset 0: key k, value v, header h=1, with one varint longer than need be or oddly null."""
    key = b"\x03" if kind == "null key length" else longer(1, kind == "key length") + b"k"
    value = b"\x05" if kind == "null value length" else longer(1, kind == "value length") + b"v"
    header = b"\x07" if kind == "null header value length" else b""
    header = header or longer(1, kind == "header value length") + b"1"
    body = b"\0" + longer(0, kind == "timestamp delta") + longer(0, kind == "offset delta")
    body += key + value + longer(1, kind == "headers count")
    body += longer(1, kind == "header key length") + b"h" + header
    return longer(len(body), kind == "length") + body


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_varints_come_out_in_their_shortest_form(tmp_path: Path, kind: str, codec: Codec) -> None:
    """C-11.11 c, F-5.3: a length of -2 is null, and is written as -1."""
    whole = ReferenceRecord(
        0,
        100,
        None if kind == "null key length" else b"k",
        None if kind == "null value length" else b"v",
        ((b"h", None if kind == "null header value length" else b"1"),),
    )
    made = batch(whole, record(1, b"b", timestamp=100), attributes=codec)
    plain = odd_record(kind) + encode_record(made.records[1], 0, 100)
    raw = encode_parts(made, compress(codec, plain))
    expected = replace(made, records=(whole,))
    stays = KEEP if whole.value is not None else TOMBSTONE
    found = rebuilt(tmp_path, raw, [stays, GONE])
    assert decode(found) == expected
    if not codec:
        assert found == encode(expected)
    assert rebuilt(tmp_path, raw, [KEEP, KEEP]) == raw
    without = replace(made, records=made.records[1:])
    assert decode(rebuilt(tmp_path, raw, [GONE, KEEP])) == without  # what goes may be odd


def test_odd_batches_among_others_come_out_in_their_place(tmp_path: Path) -> None:
    odd = batch(
        *(replace(record(i, b"k"), headers=(("é".encode(), b"1"),)) for i in range(10, 13)),
        attributes=HORIZON,
        base_timestamp=50,
        producer_id=5,
        producer_epoch=2,
        base_sequence=3,
        leader_epoch=4,
        last_offset=19,
    )
    raws = [encode(keyed(0, "abc")), encode(odd), packed(odd_at(20), Codec.LZ4), *plain_at(40)]
    states = [KEEP, GONE, KEEP] + [KEEP, KEEP, GONE] + [GONE, KEEP] + [KEEP] * 2 + [GONE] * 2
    found, rewriter = rewritten(tmp_path, raws, states)
    batches = [decode(raw) for raw in split(found)]
    assert [b.base_offset for b in batches] == [0, 10, 20, 40]
    assert batches[1] == replace(odd, records=odd.records[:2], max_timestamp=210)
    assert [len(b.records) for b in batches] == [2, 2, 1, 2]
    assert (rewriter.counts.kept, rewriter.counts.rebuilt) == (4, 3)
    assert rewriter.counts.records_kept == 7


def odd_at(offset: int) -> ReferenceBatch:
    return batch(
        record(offset, b"a"), replace(record(offset + 1, b"b"), headers=(("ü".encode(), None),))
    )


def plain_at(offset: int) -> list[bytes]:
    return [encode(keyed(offset, "xy")), encode(keyed(offset + 2, "zz"))]


# C-11.14: what Kafka's builder refuses


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("name", ["a", "ü"])  # by the kernel, and field by field
@pytest.mark.parametrize(
    ("fields", "times", "latest"),
    [
        ({"producer_id": 7, "producer_epoch": 0}, (100, 90), 100),
        ({"producer_id": 7, "base_sequence": 0}, (100, 90), 100),
        ({}, (100, -2), 100),
        ({}, (-5, -(2**60)), -1),
        ({}, (-(2**60), 3), 3),
        ({"attributes": LOG_APPEND_TIME}, (-5, -5), -5),
    ],
)
def test_what_kafka_refuses_to_rebuild_is_rebuilt_as_it_is(
    tmp_path: Path,
    codec: Codec,
    name: str,
    fields: dict[str, int],
    times: tuple[int, int],
    latest: int,
) -> None:
    """docs/differences.md: every field and time stays; the largest time is at least -1."""
    headers = ((name.encode(), None),)
    made = [
        replace(record(10 + i, b"k", timestamp=time), headers=headers)
        for i, time in enumerate((*times, 5))
    ]
    source = replace(batch(*made, **fields), max_timestamp=latest)
    first = encode(keyed(0, "a"))
    found, rewriter = rewritten(tmp_path, [first, packed(source, codec)], [KEEP, KEEP, KEEP, GONE])
    expected = replace(source, base_timestamp=times[0], records=source.records[:2])
    after = list(split(found))
    assert (after[0], len(after)) == (first, 2)
    assert replace(decode(after[1]), attributes=expected.attributes) == expected
    assert rewriter.counts.refused == 1
    copied, rewriter = rewritten(tmp_path, [first, packed(source, codec)], [KEEP] * 4)  # C-11.15
    assert copied == first + packed(source, codec)
    assert rewriter.counts.refused == 0


def test_control_batches_need_no_sequence(tmp_path: Path) -> None:
    again = rebuilt(tmp_path, ABORT_OF_PRODUCER_1, [TOMBSTONE | EXPIRED])
    assert again == b""


def test_a_negative_time_that_goes_is_not_counted_as_refused(tmp_path: Path) -> None:
    source = batch(record(0, b"a", timestamp=-7), record(1, b"b"))
    found, rewriter = rewritten(tmp_path, [encode(source)], [GONE, KEEP])
    assert len(decode(found).records) == 1
    assert rewriter.counts.refused == 0


@pytest.mark.parametrize("states", [[GONE, KEEP], [KEEP, TOMBSTONE], [GONE, GONE]])
def test_what_is_corrupt_gets_no_fresh_checksum(tmp_path: Path, states: list[int]) -> None:
    """A bit that fell over between scan and rewrite; also in what is left as a header."""
    raw = bytearray(encode(keyed(0, "ab")))
    raw[50] ^= 1  # producer id
    kept = KeptBatches.of(2, ())
    with pytest.raises(CorruptFileError, match="checksum"):
        rewritten(tmp_path, [bytes(raw)], states, 11000, kept)


# buffers


@pytest.mark.parametrize("output_bytes", [1, 100, 300, 1 << 20])
def test_output_is_the_same_however_large_its_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output_bytes: int
) -> None:
    raws = [packed(keyed(i, "abcd"), [Codec.NONE, Codec.GZIP][i // 4 % 2]) for i in range(0, 40, 4)]
    states = [GONE, KEEP, KEEP, KEEP] * 5 + [KEEP] * 4 * 4 + [GONE] * 4
    expected, _ = rewritten(tmp_path, raws, states)
    monkeypatch.setattr(batch_rewriter, "OUTPUT_BYTES", output_bytes)
    assert rewritten(tmp_path, raws, states)[0] == expected
    assert len(list(split(expected))) == 9


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_may_grow(tmp_path: Path, codec: Codec) -> None:
    """C-11.11 e: a horizon far from the records' times costs nine bytes a record."""
    source = batch(
        *(record(i, b"%d" % i, None if i else b"", timestamp=0) for i in range(500)),
    )
    horizon_ms = 2**62
    raw = packed(source, codec)
    found = rebuilt(tmp_path, raw, [KEEP] + [TOMBSTONE] * 499, horizon_ms)
    assert decode(found).records == source.records
    assert decode(found).base_timestamp == horizon_ms
    if not codec:  # nine bytes instead of one, and one more for the length of some
        assert len(found) >= len(raw) + 8 * 500


SMALL_DELTA = st.sampled_from([0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31, -(2**31), 2**62])


@given(st.lists(SMALL_DELTA, min_size=2, max_size=6), st.sampled_from([NO_HORIZON, 0, 2**62]))
def test_deltas_of_every_size(
    tmp_path_factory: pytest.TempPathFactory, deltas: list[int], horizon_ms: int
) -> None:
    root = tmp_path_factory.getbasetemp()
    times = [max(0, delta) for delta in deltas]
    values = [b"", b""] + [None if horizon_ms >= 0 else b""] * (len(times) - 2)
    made = batch(
        *(
            record(i, b"k" * 70, value, timestamp=time)
            for i, (time, value) in enumerate(zip(times, values, strict=True))
        )
    )
    states = [GONE, KEEP] + [TOMBSTONE if horizon_ms >= 0 else KEEP] * (len(times) - 2)
    found = rebuilt(root, encode(made), states, horizon_ms)
    kept = made.records[1:]
    has_horizon = horizon_ms >= 0 and len(times) > 2
    expected = replace(
        made,
        records=kept,
        attributes=HORIZON if has_horizon else 0,
        base_timestamp=horizon_ms if has_horizon else times[1],
        max_timestamp=max(times[1:]),
    )
    assert found == encode(expected)
