"""The kernels that frame batches and parse records, beside a slow twin and against damage."""

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.formats import batch_columns as columns
from storage.formats.batch_columns import (
    SLACK_BYTES,
    parse_records,
    problem_text,
    walk_batches,
)
from tests.storage.kafka_batches import COMMIT_MARKER, DELETE_HORIZON, two_records
from tests.storage.kernels.test_key_hash import slow_hash
from tests.support import slow_records
from tests.support.made_log import batch, keyed, record
from tests.support.reference_batch import (
    CONTROL,
    HORIZON,
    TRANSACTIONAL,
    encode,
    encode_record,
)
from tests.support.slow_records import BadRecordsError

SECRET = 3, 5
MAP_END = 2**62
GARBAGE = b"\xff\x80\x7f\x01"  # stands behind every buffer: what is read there must not count


class Walked(NamedTuple):
    rows: list[list[int]]
    framed: int
    code: int
    detail: int


def buffer_of(data: bytes) -> columns.ByteArray:
    """Writable, as the buffers of tasks are: other types would be compiled anew."""
    return np.frombuffer(data + GARBAGE * (SLACK_BYTES // 4), np.uint8).copy()


def walk(
    data: bytes, file_position: int = 0, previous_offset: int = -1, capacity: int = 8
) -> Walked:
    rows = np.full((capacity, columns.BATCH_COLUMNS), -99, np.int64)
    buffer = buffer_of(data)
    count, framed, code, detail = walk_batches(
        buffer, len(data), file_position, previous_offset, rows
    )
    assert (rows[count:] == -99).all()
    return Walked(rows[:count].tolist(), framed, code, detail)


def test_a_row_holds_the_fields_of_a_batch() -> None:
    """F-4.1, on batches that Kafka wrote: field by field as the source tells them."""
    data = DELETE_HORIZON + COMMIT_MARKER
    assert walk(data, file_position=1000) == (
        [
            [1000, 99, 0, 2, 0x40, 1073741823, 15, -1, -1, -1, 3, 0x77B88261, 0, 0, 0],
            [1099, 78, 983, 983, 0x30, 1000, 1000, 73, 13, -1, 1, 0x172B6DC8, 0, 0, 0],
        ],
        177,
        columns.OK,
        0,
    )


@pytest.mark.parametrize("codec", ["NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"])
def test_kafkas_batches_of_every_codec_are_framed(codec: str) -> None:
    data = two_records(codec)
    expected = [0, len(data), 0, 1, ["NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"].index(codec)]
    expected += [283843, 283843, -1, -1, -1, 2, int(data[17:21].hex(), 16), 0, 0, 0]
    assert walk(data) == ([expected], len(data), columns.OK, 0)


def test_a_batch_cut_short_at_any_length_is_left_for_later() -> None:
    whole = encode(keyed(0, "ab"))
    for cut in range(len(whole)):
        assert walk(whole + encode(keyed(2, "cd"))[:cut]).framed == len(whole)
        assert walk(whole[:cut]) == ([], 0, columns.OK, 0)


def test_the_walk_ends_where_the_rows_are_full() -> None:
    data = encode(keyed(0, "a")) + encode(keyed(1, "b")) + encode(keyed(2, "c"))
    assert len(walk(data, capacity=2).rows) == 2
    assert walk(data, capacity=2).framed == len(encode(keyed(0, "a"))) * 2


def put(data: bytes, position: int, value: int, size: int) -> bytes:
    return data[:position] + value.to_bytes(size, "big", signed=True) + data[position + size :]


@pytest.mark.parametrize(
    ("position", "value", "size", "code", "detail"),
    [
        (8, 13, 4, columns.BAD_SIZE, 13),  # below what any format needs
        (8, 0, 4, columns.BAD_SIZE, 0),
        (8, -1, 4, columns.BAD_SIZE, -1),
        (8, 48, 4, columns.BAD_SIZE, 48),  # below a v2 header
        (16, 3, 1, columns.BAD_MAGIC, 3),
        (16, -1, 1, columns.BAD_MAGIC, -1),
        (21, 5, 2, columns.BAD_CODEC, 5),
        (21, 7, 2, columns.BAD_CODEC, 7),
        (23, -1, 4, columns.NEGATIVE_OFFSET_DELTA, -1),
        (57, -1, 4, columns.NEGATIVE_COUNT, -1),
        (0, 1, 8, columns.OFFSETS_NOT_ASCENDING, 1),
        (0, -1, 8, columns.OFFSETS_NOT_ASCENDING, -1),
    ],
)
def test_a_wrong_field_stops_the_walk_at_its_batch(
    position: int, value: int, size: int, code: int, detail: int
) -> None:
    first, second = encode(keyed(0, "ab")), encode(keyed(2, "cd"))
    found = walk(first + put(second, position, value, size))
    assert (len(found.rows), found.framed, found.code, found.detail) == (
        1,
        len(first),
        code,
        detail,
    )
    assert str(detail) in problem_text(code, detail)


def test_unknown_attribute_bits_are_none_of_the_walks_business() -> None:
    """C-11.13: Kafka reads such batches."""
    assert walk(put(encode(keyed(0, "a")), 21, 0x0180, 2)).rows[0][columns.ATTRIBUTES] == 0x0180


def test_offsets_ascend_from_the_one_before() -> None:
    assert walk(encode(keyed(5, "a")), previous_offset=4).code == columns.OK
    assert walk(encode(keyed(5, "a")), previous_offset=5).code == columns.OFFSETS_NOT_ASCENDING


# Records. The columns of the kernel are held against those of the slow twin.


class Parsed(NamedTuple):
    entries: list[tuple[int, int, int, int]]  # both hashes, offset, state
    bad: int
    code: int
    detail: int


def parse(
    payloads: list[bytes],
    headers: list[dict[int, int]],
    limits: tuple[int, int, int] = (0, MAP_END, 0),
    filled: int = 0,
) -> Parsed:
    """One batch for each payload; headers: values by column, the others are 0.

    limits: first dirty offset, end of the map's offsets, now in ms.
    """
    rows = np.zeros((len(payloads), columns.BATCH_COLUMNS), np.int64)
    for row, values in zip(rows, headers, strict=True):
        for column, value in values.items():
            row[column] = value
    edges = np.cumsum([0, *map(len, payloads)])
    bounds = np.stack([edges[:-1], edges[1:]], axis=1).astype(np.int64)
    buffer = buffer_of(b"".join(payloads))
    room = filled + int(rows[:, columns.RECORDS_COUNT].sum())
    types: list[Any] = [np.uint64, np.uint64, np.int64, np.uint8]
    out = tuple(np.full(room, 77, kind) for kind in types)
    secret = np.uint64(SECRET[0]), np.uint64(SECRET[1])
    end, bad, code, detail = parse_records(
        buffer, bounds, rows, columns.RecordLimits(*limits), secret, out, filled
    )
    assert all((column[:filled] == 77).all() for column in out)
    entries = zip(*(column[filled:end].tolist() for column in out), strict=True)
    return Parsed(list(entries), bad, code, detail)


def header_of(base_offset: int, last_offset: int, count: int, **more: int) -> dict[int, int]:
    names = {
        "attributes": columns.ATTRIBUTES,
        "base_timestamp": columns.BASE_TIMESTAMP,
        "txn_flags": columns.TXN_FLAGS,
    }
    return {
        columns.BASE_OFFSET: base_offset,
        columns.LAST_OFFSET: last_offset,
        columns.RECORDS_COUNT: count,
        **{names[name]: value for name, value in more.items()},
    }


def expected_entries(
    payload: bytes, base_offset: int, last_offset: int, count: int
) -> list[tuple[int, int, int, int]]:
    entries = []
    for found in slow_records.parse(payload, base_offset, last_offset, count):
        hashes = (0, 0) if found.key is None else slow_hash(found.key, *SECRET)
        state = columns.NULL_KEY if found.key is None else columns.IN_MAP
        state |= columns.TOMBSTONE if found.value is None else 0
        entries.append((*hashes, found.offset, state))
    return entries


BYTES = st.one_of(st.none(), st.binary(max_size=12), st.binary(min_size=64, max_size=130))
HEADER_LISTS = st.lists(st.tuples(st.binary(max_size=3), BYTES), max_size=2)


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int, int, int]:
    """Records of a batch, its base and last offset and its count."""
    base_offset = draw(st.sampled_from([0, 7, 2**40]))
    offset, parts = base_offset, []
    for _ in range(draw(st.integers(0, 5))):
        offset += draw(st.sampled_from([0, 0, 1, 63, 64, 8192]))
        time = draw(st.sampled_from([0, -1, 2**40, -(2**62)]))
        made = record(offset, draw(BYTES), draw(BYTES), time)
        headers = tuple(draw(HEADER_LISTS))
        whole = type(made)(made.offset, made.timestamp, made.key, made.value, headers)
        parts.append(encode_record(whole, base_offset, 0))
        offset += 1
    return b"".join(parts), base_offset, max(base_offset, offset - 1), len(parts)


@given(payloads())
def test_records_are_those_of_the_slow_twin(made: tuple[bytes, int, int, int]) -> None:
    payload, *header = made
    assert parse([payload], [header_of(*header)]) == (
        expected_entries(payload, *header),
        -1,
        columns.OK,
        0,
    )


@pytest.mark.parametrize("seed", range(8))
def test_keys_of_all_lengths_in_many_batches_keep_their_hashes(seed: int) -> None:
    """Eight of equally many words are hashed at once, from whichever batches they come."""
    chance = Random(seed)
    parts, headers, entries = [], [], []
    for base_offset in range(0, 400, 20):
        records = [
            record(base_offset + i, chance.choice((None, chance.randbytes(chance.randrange(90)))))
            for i in range(chance.randrange(20))
        ]
        parts.append(b"".join(encode_record(made, base_offset, 0) for made in records))
        header = base_offset, base_offset + 19, len(records)
        headers.append(header_of(*header))
        entries += expected_entries(parts[-1], *header)
    assert parse(parts, headers, filled=5) == (entries, -1, columns.OK, 0)


@given(payloads(), st.data())
@settings(max_examples=300)
def test_damaged_records_are_refused_where_the_slow_twin_refuses_them(
    made: tuple[bytes, int, int, int], data: st.DataObject
) -> None:
    payload, *header = made
    damaged = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 3)) if payload else 0):
        byte = st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
        damaged[data.draw(st.integers(0, len(payload) - 1))] = data.draw(byte)
    cut = data.draw(st.one_of(st.just(len(payload)), st.integers(0, len(payload))))
    header[2] += data.draw(st.sampled_from([0, 0, 0, 1, -1])) if header[2] else 0
    assert_as_twin(bytes(damaged[:cut]), header)


def assert_as_twin(payload: bytes, header: list[int]) -> None:
    found = parse([payload], [header_of(*header)])
    try:
        expected = expected_entries(payload, *header)
    except BadRecordsError as error:
        assert found.bad == 0
        assert found.detail == error.number
        left_over = found.code == columns.RECORDS_LEFT_OVER
        assert left_over == (error.what == "left over")
    else:
        assert found == (expected, -1, columns.OK, 0)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_every_cut_and_every_flipped_bit_is_as_the_slow_twin_says(count: int) -> None:
    records = [record(i, b"k%d" % i, None if i == 1 else b"v", 0) for i in range(3)]
    payload = b"".join(encode_record(r, 0, 0) for r in records)
    for cut in range(len(payload) + 1):
        assert_as_twin(payload[:cut], [0, 2, count])
    for bit in range(8 * len(payload)):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_as_twin(bytes(damaged), [0, 2, count])


# Over-long varints read (F-5.2); a fifth byte that goes on does not, nor an eleventh of a varlong.
LONG_ZERO, TOO_LONG = b"\x80\x80\x80\x80\x00", b"\x80\x80\x80\x80\x80\x00"
LONG_VARLONG, TOO_LONG_VARLONG = b"\x80" * 9 + b"\x00", b"\x80" * 10 + b"\x00"


@pytest.mark.parametrize(
    ("body", "is_sound"),
    [
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\0", True),
        (b"\0" + LONG_VARLONG + LONG_ZERO + b"\x82\0k" + b"\x82\0v" + LONG_ZERO, True),
        (b"\0" + TOO_LONG_VARLONG + b"\0" + b"\x02k" + b"\x02v" + b"\0", False),
        (b"\0" + b"\0" + TOO_LONG + b"\x02k" + b"\x02v" + b"\0", False),
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + TOO_LONG, False),
        (b"\0" + b"\0" + b"\0" + b"\x03" + b"\x02v" + b"\0", True),  # length -2: null (F-5.3)
        (b"\0" + b"\0" + b"\0" + b"\xff\xff\xff\xff\x0f" + b"\x05" + b"\0", True),
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\x01", False),  # -1 headers
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\x04", False),  # 2 headers, no bytes
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\x02\x01\x01", False),  # no header key
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\x02\x00\x05", True),  # null header value
        (b"\0" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\0\0", False),  # a byte too many
        (b"\xff" + b"\0" + b"\0" + b"\x02k" + b"\x02v" + b"\0", True),  # attributes: anything
    ],
)
def test_odd_forms_of_a_record(body: bytes, is_sound: bool) -> None:
    payload = bytes([2 * len(body)]) + body
    assert (parse([payload], [header_of(0, 0, 1)]).code == columns.OK) is is_sound
    assert_as_twin(payload, [0, 0, 1])


def test_offsets_stay_inside_their_batch_and_ascend() -> None:
    payload = b"".join(encode_record(record(offset, b"k"), 5, 0) for offset in (5, 7, 7))
    assert parse([payload], [header_of(5, 7, 3)])[1:] == (0, columns.BAD_RECORD_OFFSET, 2)
    assert parse([payload], [header_of(5, 6, 3)])[1:] == (0, columns.BAD_RECORD_OFFSET, 1)
    assert parse([payload], [header_of(6, 9, 3)])[1:] == (0, columns.BAD_RECORD_OFFSET, 2)


def test_several_batches_fill_on_and_the_bad_one_is_named() -> None:
    one = encode_record(record(0, b"k"), 0, 0)
    two = encode_record(record(1, b"l"), 1, 0)
    headers = [header_of(0, 0, 1), header_of(1, 1, 1)]
    found = parse([one, two], headers, filled=3)
    assert [entry[2] for entry in found.entries] == [0, 1]
    found = parse([one, two + b"\0"], headers)
    assert (found.bad, found.code, found.detail) == (1, columns.RECORDS_LEFT_OVER, 1)


def test_of_a_batch_without_records_nothing_is_read() -> None:
    assert parse([b"garbage"], [header_of(0, 5, 0)]) == ([], -1, columns.OK, 0)


def states(
    attributes: int,
    horizon_ms: int,
    now_ms: int,
    map_offsets: tuple[int, int] = (0, 0),
    txn_flags: int = 0,
) -> list[int]:
    made = batch(
        record(0, b"k", b""), record(1, b"k", None), record(2, None, None), record(3, None, b"v")
    )
    payload = encode(made)[61:]
    header = header_of(
        0, 3, 4, attributes=attributes, base_timestamp=horizon_ms, txn_flags=txn_flags
    )
    return [entry[3] for entry in parse([payload], [header], (*map_offsets, now_ms)).entries]


@pytest.mark.parametrize(
    ("horizon_ms", "now_ms", "expired"),
    [(11000, 10999, False), (11000, 11000, True), (-1, 0, True)],  # C-11.7 d, E-36
)
def test_a_tombstone_expires_at_its_horizon(horizon_ms: int, now_ms: int, expired: bool) -> None:
    """An empty value is none (E-4); a null key goes for its own reason (E-1)."""
    tombstone = columns.TOMBSTONE | columns.IN_MAP | (columns.EXPIRED if expired else 0)
    null_keys = [columns.NULL_KEY | columns.TOMBSTONE, columns.NULL_KEY]
    found = states(HORIZON, horizon_ms, now_ms, map_offsets=(0, 4))
    assert found == [columns.IN_MAP, tombstone, *null_keys]


def test_without_the_bit_there_is_no_horizon() -> None:
    assert states(0, 0, 10**6, map_offsets=(0, 4))[1] == columns.TOMBSTONE | columns.IN_MAP


@pytest.mark.parametrize(
    ("map_offsets", "in_map"), [((0, 4), [0, 1]), ((1, 4), [1]), ((2, 4), []), ((0, 1), [0])]
)
def test_what_lies_below_the_first_dirty_offset_is_not_in_the_map(
    map_offsets: tuple[int, int], in_map: list[int]
) -> None:
    """C-7.5; a null key never is (C-7.6)."""
    found = states(0, 0, 0, map_offsets)
    assert [i for i, state in enumerate(found) if state & columns.IN_MAP] == in_map


def test_behind_the_map_every_record_stays() -> None:
    """C-7.8, C-11.2: null keys, too, and tombstones whose horizon has passed."""
    assert states(HORIZON, 0, 10, map_offsets=(0, 1)) == [
        columns.IN_MAP,
        columns.TOMBSTONE,
        columns.TOMBSTONE,
        columns.KEEP,
    ]
    assert states(HORIZON, 0, 10, map_offsets=(0, 2))[1:3] == [
        columns.TOMBSTONE | columns.EXPIRED | columns.IN_MAP,
        columns.TOMBSTONE,
    ]


@pytest.mark.parametrize("map_offsets", [(0, 4), (2, 4), (0, 1)])
def test_records_of_an_aborted_batch_go_whatever_they_are(map_offsets: tuple[int, int]) -> None:
    """C-8.4, E-40: tombstones, null keys, behind the map or not; C-7.10: the map is told apart."""
    tombstones = [0, columns.TOMBSTONE, columns.TOMBSTONE, 0]
    gone = [columns.ABORTED | tombstone for tombstone in tombstones]
    in_map = [
        columns.IN_MAP if map_offsets[0] <= i < min(2, map_offsets[1]) else 0 for i in range(4)
    ]
    expected = [state | more for state, more in zip(gone, in_map, strict=True)]
    assert states(HORIZON, 0, 10, map_offsets, columns.ABORTED_FOR_CLEANING) == expected


@pytest.mark.parametrize("payload", [encode_record(record(0, b"k", None), 0, 0), b"", b"\xff\xff"])
def test_records_of_an_aborted_batch_are_not_read(payload: bytes) -> None:
    """C-10.3: neither the map nor the cleaning looks at them."""
    both = columns.ABORTED_FOR_MAP | columns.ABORTED_FOR_CLEANING
    header = header_of(7, 9, 2, attributes=TRANSACTIONAL, txn_flags=both)
    behind = encode_record(record(10, b"k", b"v"), 10, 0)
    found = parse([payload, behind], [header, header_of(10, 10, 1)], (0, 99, 0))
    assert found.code == columns.OK
    states_found = [state for *_, state in found.entries]
    assert states_found == [columns.ABORTED, columns.ABORTED, columns.IN_MAP]


def test_aborted_for_the_map_alone_is_looked_up() -> None:
    """C-7.11: less compaction, no loss."""
    assert states(0, 0, 0, (0, 4), columns.ABORTED_FOR_MAP) == [
        columns.KEEP,
        columns.TOMBSTONE,
        columns.TOMBSTONE | columns.NULL_KEY,
        columns.NULL_KEY,
    ]


# Control batches, F-6: the key is a version and a type.

MARKER = CONTROL | TRANSACTIONAL


def control(*keys: bytes | None, value: bytes | None = b"\0\0\0\0\0\0") -> Parsed:
    records = [record(i, key, value) for i, key in enumerate(keys)]
    payload = b"".join(encode_record(made, 0, 0) for made in records)
    header = header_of(0, max(0, len(keys) - 1), len(keys), attributes=MARKER)
    return parse([payload], [header])


def test_kafkas_marker_is_a_control_record_of_its_type() -> None:
    header = header_of(983, 983, 1, attributes=0x30)
    found = parse([COMMIT_MARKER[61:]], [header])
    assert found.entries == [(1, 0, 983, columns.CONTROL_RECORD)]


@pytest.mark.parametrize("type_", [0, 1, 2, 3, 4, 5, 6, 0x7FFF, 0x8000, 0xFFFF])
@pytest.mark.parametrize("version", [0, 1, 0x7FFF])
@pytest.mark.parametrize("more", [b"", b"more"])
def test_the_type_of_a_control_record_is_left_whatever_its_version(
    type_: int, version: int, more: bytes
) -> None:
    key = version.to_bytes(2, "big") + type_.to_bytes(2, "big") + more
    assert control(key).entries == [(type_, 0, 0, columns.CONTROL_RECORD)]


def test_a_control_record_is_no_data_whatever_the_limits_and_flags() -> None:
    payload = encode_record(record(0, b"\0\0\0\1", None), 0, 0)
    header = header_of(0, 0, 1, attributes=MARKER | HORIZON, txn_flags=7)
    for limits in ((0, 9, 5), (5, 9, 5), (0, 0, 5)):
        ((*_, state),) = parse([payload], [header], limits).entries
        assert state == columns.CONTROL_RECORD | columns.TOMBSTONE


@pytest.mark.parametrize(
    "key",
    [None, b"", b"\0", b"\0\0", b"\0\0\0", b"\x80\0\0\0", b"\xff\xff\0\1"],
    ids=lambda key: "null" if key is None else key.hex() or "empty",
)
def test_a_control_key_cut_short_or_of_a_negative_version_is_refused(key: bytes | None) -> None:
    good = b"\0\0\0\0"
    found = control(good, key)
    assert found[1:] == (0, columns.BAD_CONTROL_KEY, 1)
    assert found.entries == control(good).entries
    assert "record 1 of the control batch" in problem_text(found.code, found.detail)


@given(st.binary(max_size=200), st.integers(0, 40))
@example(b"\xff" * 100, 3)
def test_nonsense_never_leads_outside_of_the_buffer(payload: bytes, count: int) -> None:
    assert_as_twin(payload, [0, 2**31 - 1, count])
