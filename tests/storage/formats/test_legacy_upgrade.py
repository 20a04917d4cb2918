"""The kernels that upgrade messages of v0 and v1, held against the decoder of one at a time."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.codecs.compression import Codec, compress
from storage.codecs.payload_kernels import tools_of_thread
from storage.errors import CorruptFileError
from storage.formats import batch_columns as columns
from storage.formats import legacy_upgrade
from storage.formats.batch_columns import SLACK_BYTES, walk_batches
from storage.formats.legacy_upgrade import FramedEntries, Upgraded, upgrade
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from tests.storage.legacy_vectors import V0, V0_LZ4, V1, V1_LZ4
from tests.support import slow_records
from tests.support.legacy_writer import encode_message, encode_message_set

POSITION = 1000  # of the buffer in its file


class Taken:
    """Buffers with nothing behind them: what is written there by mistake is seen."""

    def __init__(self) -> None:
        self.arrays: list[columns.ByteArray] = []

    def __call__(self, _name: str, length: int) -> columns.ByteArray:
        self.arrays.append(np.full(length + 64, 0xA5, np.uint8))
        return self.arrays[-1][:length]

    def intact(self) -> bool:
        return all((array[-64:] == 0xA5).all() for array in self.arrays)


def framed(data: bytes, previous_offset: int = -1) -> FramedEntries:
    rows = np.zeros((64, columns.BATCH_COLUMNS), np.int64)
    buffer = np.frombuffer(data + b"\x81" * SLACK_BYTES, np.uint8).copy()
    count, end, code, _ = walk_batches(buffer, len(data), POSITION, previous_offset, rows)
    assert (end, code) == (len(data), columns.OK)
    return FramedEntries("0.log", buffer, POSITION, rows[:count])


def upgraded(data: bytes, previous_offset: int = -1) -> tuple[FramedEntries, Upgraded]:
    entries, taken = framed(data, previous_offset), Taken()
    done = upgrade(entries, previous_offset, taken)
    assert taken.intact()
    return entries, done


def records_of(entries: FramedEntries, result: Upgraded) -> list[list[Record]]:
    """The records of each entry, by the slow reader of v2 records."""
    assert result.problem is None and result.done == len(entries.rows)
    found = []
    for row in entries.rows.tolist():
        payload = result.records[row[columns.RECORDS_START] : row[columns.RECORDS_END]].tobytes()
        offsets = row[columns.BASE_OFFSET], row[columns.LAST_OFFSET]
        records = slow_records.parse(payload, *offsets, row[columns.RECORDS_COUNT])
        base_timestamp = row[columns.BASE_TIMESTAMP]
        found.append([Record(o, base_timestamp + t, key, value) for o, t, key, value in records])
    return found


RECORDS = [Record(0, 283843, b"key1", b"value1"), Record(1, 1234, b"key2", b"value2")]
OF_V0 = [record._replace(timestamp=-1) for record in RECORDS]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(V0, OF_V0[:1]), (V1, RECORDS[:1]), (V0_LZ4, OF_V0), (V1_LZ4, RECORDS)],
)
def test_kafkas_messages(entry: bytes, expected: list[Record]) -> None:
    """F-7.1, F-7.4, F-8.4."""
    entries, result = upgraded(entry)
    assert records_of(entries, result) == [expected]
    assert entries.rows[0, columns.LAST_OFFSET] == expected[-1].offset
    assert entries.rows[0, columns.MAX_TIMESTAMP] == max(r.timestamp for r in expected)


BYTES = st.none() | st.binary(max_size=200)
TIMES = st.sampled_from([-1, 0, 1, 1_700_000_000_000, 2**62])


@st.composite
def message_sets(draw: st.DrawFn) -> tuple[bytes, list[list[Record]]]:
    """Entries of all formats one behind the other, and what each holds."""
    offset, data, expected = draw(st.integers(0, 2**40)), b"", []
    for _ in range(draw(st.integers(1, 6))):
        records = []
        for _ in range(draw(st.integers(1, 5))):
            offset += draw(st.sampled_from([1, 2, 1000]))
            records.append(Record(offset, draw(TIMES), draw(BYTES), draw(BYTES)))
        magic = draw(st.integers(0, 2))
        codec = draw(st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]))
        append_time = draw(st.none() | st.just(5000))
        if magic == 2:
            data += encode_batch(records)
            continue
        data += encode_message_set(magic, records, codec, append_time)
        if magic == 0:
            records = [record._replace(timestamp=-1) for record in records]
        elif append_time is not None:
            records = [record._replace(timestamp=append_time) for record in records]
        expected += [records] if codec else [[record] for record in records]
    return data, expected


@given(message_sets())
def test_whatever_was_written_is_found_again(made: tuple[bytes, list[list[Record]]]) -> None:
    """F-7.3 to F-7.6: plain and nested, relative and absolute, both types of timestamps."""
    data, expected = made
    entries, result = upgraded(data)
    assert result.problem is None and result.done == len(entries.rows)
    legacy = entries.rows[:, columns.ATTRIBUTES] & columns.LEGACY != 0
    of_legacy = entries._replace(rows=entries.rows[legacy])
    assert records_of(of_legacy, result._replace(done=int(legacy.sum()))) == expected


def wrapper(inner: bytes, offset: int = 9, magic: int = 1, codec: Codec = Codec.GZIP) -> bytes:
    return encode_message(magic, Record(offset, 77, None, compress(codec, inner)), codec)


def test_messages_of_another_format_than_their_wrapper() -> None:
    """E-35, F-7.7 (KAFKA-4298): which offsets are meant, the wrapper's format says."""
    inner = encode_message(1, Record(3, 5, b"a", b"1")) + encode_message(
        0, Record(4, 5, b"b", b"2")
    )
    assert records_of(*upgraded(wrapper(inner))) == [
        [Record(8, 5, b"a", b"1"), Record(9, -1, b"b", b"2")]
    ]
    assert records_of(*upgraded(wrapper(inner, offset=4, magic=0))) == [
        [Record(3, 5, b"a", b"1"), Record(4, -1, b"b", b"2")]
    ]


def test_a_cut_message_at_the_end_of_a_wrapper_is_passed_over() -> None:
    """As Kafka's reader does; there is one whole message at least."""
    first, second = (encode_message(1, Record(i, 5, b"k", b"v")) for i in (0, 1))
    for cut in range(len(second)):
        moved = wrapper(first + second[:cut], offset=4)
        assert records_of(*upgraded(moved)) == [[Record(4, 5, b"k", b"v")]]


def replaced(data: bytes, at: int, other: bytes) -> bytes:
    return data[:at] + other + data[at + len(other) :]


GOOD = encode_message(1, Record(0, 5, b"k", b"v"))
HUGE, NEGATIVE = b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (wrapper(b""), "the wrapper holds no message"),
        (wrapper(GOOD[:-1]), "the wrapper holds no message"),
        (wrapper(replaced(GOOD, 8, b"\0\0\0\x0d")), "message 0 of the entry does not parse"),
        (wrapper(replaced(GOOD, 8, NEGATIVE)), "message 0 of the entry does not parse"),
        (wrapper(GOOD + replaced(GOOD, 8, b"\0\0\0\x15")), "message 1 of the entry"),
        (wrapper(replaced(GOOD, 16, b"\x02")), "message 0 of the wrapper is of no known"),
        (wrapper(replaced(GOOD, 17, b"\x01")), "message 0 of the wrapper is compressed"),
        (wrapper(replaced(GOOD, 26, HUGE)), "message 0 of the entry does not parse"),
        (wrapper(replaced(GOOD, 31, HUGE)), "message 0 of the entry does not parse"),
        (replaced(GOOD, 26, HUGE), "message 0 of the entry does not parse"),
        (replaced(GOOD, 31, HUGE), "message 0 of the entry does not parse"),
        (replaced(GOOD, 31, b"\0\0\0\x02"), "message 0 of the entry does not parse"),
        (wrapper(replaced(GOOD, 7, b"\x0a")), "the wrapper's offset is below 10"),
        (wrapper(replaced(GOOD, 7, b"\x01") + GOOD), "record 1 of the batch has an offset out of"),
        (wrapper(GOOD + replaced(GOOD, 3, b"\x01"), offset=2**33), "record 1 of the batch"),
        (wrapper(GOOD + GOOD), "record 1 of the batch has an offset out of order"),
        (
            wrapper(GOOD + replaced(GOOD, 6, b"\x80") + replaced(GOOD, 7, b"\x02")),
            "record 2 of the",
        ),
        (encode_message(1, Record(9, 5, None, None), 1), "the wrapper's value does not end"),
        (encode_message(1, Record(9, 5, None, b"\x1f\x8b"), 1), "gzip"),
        (encode_message(0, Record(9, 5, None, b"\x04\x22"), 3), "lz4"),
    ],
)
def test_the_error_of_what_does_not_parse_names_its_position(entry: bytes, problem: str) -> None:
    if int.from_bytes(entry[:8], "big") == 0:
        entry = (9).to_bytes(8, "big") + entry[8:]
    _, result = upgraded(V1 + entry)
    assert result.done == 1 and isinstance(result.problem, CorruptFileError)
    assert problem in str(result.problem)
    assert result.problem.position == POSITION + len(V1)


def test_a_wrapper_that_begins_before_the_end_of_the_last_one() -> None:
    inner = b"".join(encode_message(1, Record(i, 5, b"k", b"v")) for i in range(3))
    _, result = upgraded(V1 + wrapper(inner, offset=2))
    assert result.done == 1
    assert "base offset 0 is not above" in str(result.problem)


@given(st.data())
def test_noise_inside_a_wrapper_never_leaves_the_buffers(data: st.DataObject) -> None:
    inner = bytearray(
        b"".join(encode_message(i % 2, Record(i, 5, b"key", b"v" * i)) for i in range(5))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(inner) - 1))
        inner[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    offset = data.draw(st.sampled_from([1, 9, 2**40]))
    _, result = upgraded(wrapper(bytes(inner), offset=offset))
    assert (result.done == 1) == (result.problem is None)


def test_as_much_is_upgraded_at_once_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_upgrade, "UPGRADED_BYTES", 200)
    plain = [encode_message(1, Record(i, 5, b"k" * 60, b"v")) for i in range(4)]
    entries, result = upgraded(b"".join(plain))
    assert 1 <= result.done < 4 and result.problem is None
    large = wrapper(encode_message(1, Record(0, 5, b"k" * 100_000, b"v")), offset=0)
    entries, result = upgraded(large)
    assert records_of(entries, result) == [[Record(0, 5, b"k" * 100_000, b"v")]]


@given(message_sets())
def test_the_same_without_libraries_that_are_called_by_address(
    made: tuple[bytes, list[list[Record]]],
) -> None:
    entries, result = upgraded(made[0])
    nothing = np.zeros(5, np.int64)
    tools = tools_of_thread()._replace(addresses=nothing, zlib_functions=nothing)
    with mock.patch.object(legacy_upgrade, "tools_of_thread", lambda: tools):
        again, other = upgraded(made[0])
    assert (again.rows == entries.rows).all()
    end = int(entries.rows[:, columns.RECORDS_END].max())
    assert (other.records[:end] == result.records[:end]).all()
    assert (other.done, other.problem) == (result.done, result.problem)
