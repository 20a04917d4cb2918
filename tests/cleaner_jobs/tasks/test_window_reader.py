"""Windows of whole batches, their checks, and the records of compressed ones."""

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from cleaner_jobs.messages import RoundSettings
from cleaner_jobs.tasks.window_reader import RecordColumns, WindowReader, check_checksums, payloads
from storage.codecs.compression import Codec, compress
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import batch_windows
from storage.formats.batch_columns import (
    BASE_OFFSET,
    CONTROL_RECORD,
    IN_MAP,
    NULL_KEY,
    POSITION,
    REASON_MASK,
    SIZE,
    TOMBSTONE,
)
from storage.formats.batch_windows import Buffers, Window
from storage.formats.record import Record
from tests.support.legacy_writer import encode_message_set
from tests.support.local_round import HASH_KEY, settings_in
from tests.support.made_log import batch, keyed, packed, record
from tests.support.random_batches import random_batches
from tests.support.reference_batch import (
    HEADER,
    ReferenceBatch,
    encode,
    encode_parts,
    encode_record,
)

BATCHES = [encode(keyed(0, "ab")), encode(keyed(2, "c" * 40)), encode(keyed(42, "d"))]


def write(path: Path, batches: Sequence[bytes]) -> str:
    path.write_bytes(b"".join(batches))
    return str(path)


def windows_of(
    path: str, start: int = 0, end: int | None = None, base_offset: int = 0
) -> list[tuple[list[list[int]], bytes]]:
    """The rows and bytes of each window, which the next one overwrites."""
    end = Path(path).stat().st_size if end is None else end
    with WindowReader(path, base_offset, Buffers()) as reader:
        return [(w.rows.tolist(), bytes(w.batches())) for w in reader.windows(start, end)]


def test_one_window_holds_what_fits(tmp_path: Path) -> None:
    ((rows, data),) = windows_of(write(tmp_path / "0.log", BATCHES))
    assert data == b"".join(BATCHES)
    assert [row[BASE_OFFSET] for row in rows] == [0, 2, 42]
    assert [row[POSITION] for row in rows] == [0, len(BATCHES[0]), len(BATCHES[0] + BATCHES[1])]


@pytest.mark.parametrize("window_bytes", [1, 16, 17, 18, 61, 79, 80, 81, 100, 500, 600])
@pytest.mark.parametrize("window_batches", [1, 2, 100])
def test_windows_of_every_size_hold_whole_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window_bytes: int, window_batches: int
) -> None:
    """A batch larger than the window gets one of its own (C-12.6)."""
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", window_bytes)
    monkeypatch.setattr(batch_windows, "WINDOW_BATCHES", window_batches)
    found = windows_of(write(tmp_path / "0.log", BATCHES))
    assert b"".join(data for _, data in found) == b"".join(BATCHES)
    assert [row[BASE_OFFSET] for rows, _ in found for row in rows] == [0, 2, 42]
    for rows, data in found:
        assert len(rows) <= window_batches
        assert len(data) <= window_bytes or len(rows) == 1
        assert sum(row[SIZE] for row in rows) == len(data)


def test_windows_behind_legacy_messages_are_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = encode_message_set(1, [Record(i, i, b"k", b"v") for i in range(8)])
    monkeypatch.setattr(batch_windows, "LEGACY_WINDOW_BYTES", len(messages) // 4)
    path = write(tmp_path / "0.log", [messages])
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", len(messages) // 2)
    with WindowReader(path, 0, Buffers()) as reader:
        found = [
            window.rows[:, BASE_OFFSET].tolist() for window in reader.windows(0, len(messages))
        ]
    assert found == [[0, 1, 2, 3], [4, 5], [6, 7]]


def test_a_stretch_begins_and_ends_between_batches(tmp_path: Path) -> None:
    path, first = write(tmp_path / "0.log", BATCHES), len(BATCHES[0])
    ((rows, data),) = windows_of(path, first, first + len(BATCHES[1]))
    assert data == BATCHES[1]
    assert rows[0][POSITION] == first
    assert windows_of(path, 5, 5) == []


@pytest.mark.parametrize("window_bytes", [30, 80, 1 << 20])
def test_a_tail_cut_short_at_any_length_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window_bytes: int
) -> None:
    """C-12.7: from one byte on."""
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", window_bytes)
    for kept in range(1, len(BATCHES[2])):
        path = write(tmp_path / "0.log", [BATCHES[0], BATCHES[2][:kept]])
        with pytest.raises(CorruptFileError, match=f"cut short, {kept} are left") as caught:
            windows_of(path)
        assert (caught.value.path, caught.value.position) == (path, len(BATCHES[0]))


def test_a_split_that_cuts_a_batch_blames_the_index(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", BATCHES)
    for end in range(len(BATCHES[0]) + 1, len(BATCHES[0]) + len(BATCHES[1])):
        with pytest.raises(CorruptFileError, match=f"index puts the start of a batch .* at {end}"):
            windows_of(path, 0, end)


def test_a_split_that_begins_inside_a_batch_is_corrupt(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", BATCHES)
    for start in range(1, len(BATCHES[0])):
        with pytest.raises(CorruptFileError):
            windows_of(path, start)


def test_a_file_shorter_than_listed_is_corrupt(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", BATCHES)
    whole = sum(map(len, BATCHES))
    with pytest.raises(CorruptFileError, match="ends here, 7 bytes before its listed size"):
        windows_of(path, 0, whole + 7)


def test_offsets_that_do_not_fit_the_segment_are_unsupported(tmp_path: Path) -> None:
    """C-16.1: 2147483647 above the base is the most."""
    fits, outside = encode(keyed(2**31 + 4, "a")), encode(keyed(2**31 + 5, "a"))
    path = write(tmp_path / "5.log", [fits])
    assert len(windows_of(path, base_offset=5)) == 1
    path = write(tmp_path / "5.log", [fits, outside])
    with pytest.raises(UnsupportedFormatError, match="offset 2147483653 is too far") as caught:
        windows_of(path, base_offset=5)
    assert caught.value.position == len(fits)


def test_an_offset_that_outgrows_64_bits_does_not_pass_for_a_small_one(tmp_path: Path) -> None:
    """An empty batch: there is no record in it that would be out of its place."""
    raw = encode(ReferenceBatch(2**63 - 1, 2**63 - 1, 0, 0, -1, -1))
    raw = raw[:23] + (10).to_bytes(4, "big") + raw[27:]
    with pytest.raises(CorruptFileError, match="no offset can follow it"):
        windows_of(write(tmp_path / "0.log", [raw]))


def test_an_offset_below_the_segments_base_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="base offset 0"):
        windows_of(write(tmp_path / "5.log", BATCHES), base_offset=1)


def test_offsets_ascend_over_the_edge_of_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_windows, "WINDOW_BATCHES", 1)
    with pytest.raises(CorruptFileError, match="base offset 2 is not above"):
        windows_of(write(tmp_path / "0.log", [BATCHES[1], BATCHES[1]]))


@pytest.mark.parametrize(
    ("position", "value", "kind", "problem"),
    [
        (16, 1, UnsupportedFormatError, "codec 6"),  # its CRC, read as attributes of v1
        (16, 3, UnsupportedFormatError, "magic 3"),
        (22, 6, UnsupportedFormatError, "codec 6"),
        (8, 0xFF, CorruptFileError, "batch length -"),
        (57, 0xFF, CorruptFileError, "records count -"),
    ],
)
def test_what_cannot_be_framed_is_named_with_its_position(
    tmp_path: Path, position: int, value: int, kind: type[CorruptFileError], problem: str
) -> None:
    wrong = bytearray(BATCHES[1])
    wrong[position] = value
    path = write(tmp_path / "0.log", [BATCHES[0], bytes(wrong), BATCHES[2]])
    with pytest.raises(kind, match=problem) as caught:
        windows_of(path)
    assert type(caught.value) is kind
    assert (caught.value.path, caught.value.position) == (path, len(BATCHES[0]))


def only_window(path: str, buffers: Buffers) -> Window:
    """The reader may be closed: what it read is in the buffers."""
    with WindowReader(path, 0, buffers) as reader:
        (window,) = list(reader.windows(0, Path(path).stat().st_size))
    return window


def test_every_flipped_bit_under_the_checksum_is_found(tmp_path: Path) -> None:
    """F-4.2: bytes 21 and on; a flipped length or magic is found by the framing."""
    for bit in range(21 * 8, len(BATCHES[2]) * 8):
        wrong = bytearray(BATCHES[2])
        wrong[bit // 8] ^= 1 << bit % 8
        path = write(tmp_path / "0.log", [BATCHES[0], bytes(wrong)])
        with pytest.raises(CorruptFileError):  # the framing sees some of them first
            check_checksums(only_window(path, Buffers()))


def test_a_wrong_checksum_is_named_with_both_values(tmp_path: Path) -> None:
    wrong = BATCHES[2][:17] + b"\0\0\0\0" + BATCHES[2][21:]
    path = write(tmp_path / "0.log", [BATCHES[0], wrong])
    window = only_window(path, Buffers())
    with pytest.raises(CorruptFileError, match="checksum 00000000 is stored, ") as caught:
        check_checksums(window)
    assert caught.value.position == len(BATCHES[0])
    assert BATCHES[2][17:21].hex() in str(caught.value)
    check_checksums(window._replace(rows=window.rows[:1]))


# records, decompressed


def records_of(path: str) -> list[list[bytes]]:
    """The record bytes of each batch, by run."""
    buffers = Buffers()
    window = only_window(path, buffers)
    runs, next_batch = [], 0
    for run in payloads(window, buffers):
        assert run.first == next_batch
        next_batch = run.end
        runs.append([bytes(run.buffer[start:end]) for start, end in run.bounds.tolist()])
    assert next_batch == len(window.rows)
    return runs


MIXED = [
    (keyed(0, "abc"), Codec.NONE),
    (keyed(3, "def"), Codec.GZIP),
    (keyed(6, "ghi" * 30), Codec.ZSTD),
    (keyed(96, "abc"), Codec.LZ4),
    (keyed(99, "abc"), Codec.NONE),
    (keyed(102, "def"), Codec.NONE),
    (keyed(105, "abc"), Codec.SNAPPY),
]
MIXED_RECORDS = [encode(made)[HEADER.size :] for made, _ in MIXED]


def test_runs_share_a_buffer_between_codec_and_none(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", [packed(*item) for item in MIXED])
    runs = records_of(path)
    assert [len(run) for run in runs] == [1, 3, 2, 1]
    assert [records for run in runs for records in run] == MIXED_RECORDS


@pytest.mark.parametrize("room", [1, 40, 41, 100, 2000])
def test_records_that_do_not_fit_the_buffer_grow_it_or_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(batch_windows, "PAYLOAD_BYTES", room)
    path = write(tmp_path / "0.log", [packed(*item) for item in MIXED])
    runs = records_of(path)
    assert [records for run in runs for records in run] == MIXED_RECORDS
    assert (len(runs) > 4) == (room < 2000)


def test_records_that_are_not_what_the_codec_says_are_corrupt(tmp_path: Path) -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        wrong = encode_parts(batch(record(2, b"a"), attributes=codec), b"\xffgarbage\xff" * 4)
        path = write(tmp_path / "0.log", [BATCHES[0], wrong])
        with pytest.raises(CorruptFileError) as caught:
            records_of(path)
        assert (caught.value.path, caught.value.position) == (path, len(BATCHES[0]))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_is_refused_before_it_fills_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: Codec
) -> None:
    """A batch that decompresses to more than a task has room for; here 1 MiB."""
    limit = 1 << 20
    monkeypatch.setattr(batch_windows, "MAX_DECOMPRESSED_BYTES", limit)
    monkeypatch.setattr(batch_windows, "PAYLOAD_BYTES", 1 << 16)
    bomb = encode_parts(batch(record(0, b"a"), attributes=codec), compress(codec, bytes(8 * limit)))
    path = write(tmp_path / "0.log", [bomb])
    tracemalloc.start()
    with pytest.raises(CorruptFileError, match=f"more than {limit} bytes"):
        records_of(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    window = batch_windows.WINDOW_BYTES + 16 * 8 * batch_windows.WINDOW_BATCHES
    assert peak < window + 4 * limit


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("count", [6, 1000, 2**31 - 1])
def test_a_records_count_that_lies_asks_for_no_memory(
    tmp_path: Path, codec: Codec, count: int
) -> None:
    """35 bytes of records hold five of the smallest, of seven bytes each (F-5.5)."""
    records = b"".join(encode_record(record(i, b"", b"", 0), 0, 0) for i in range(5))
    assert len(records) == 35
    raw = bytearray(encode_parts(batch(record(0, b""), attributes=codec), compress(codec, records)))
    raw[57:61] = count.to_bytes(4, "big")
    path = write(tmp_path / "0.log", [bytes(raw)])
    with pytest.raises(CorruptFileError, match=f"records count {count} is more than"):
        records_of(path)


def test_of_an_empty_batch_nothing_is_read_whatever_its_codec(tmp_path: Path) -> None:
    empty = encode_parts(batch(record(0, b"a"), attributes=Codec.ZSTD), b"garbage")
    raw = bytearray(empty)
    raw[57:61] = bytes(4)
    assert records_of(write(tmp_path / "0.log", [bytes(raw)])) == [[b""]]


NOW_MS = -10  # every horizon is ahead
EVERY_OFFSET = 0, 2**62


def columns_of(root: Path, raws: list[bytes], map_offsets: tuple[int, int]) -> RecordColumns:
    """Each batch in a file, and so in a window, of its own."""
    settings: RoundSettings = settings_in(root / "work", NOW_MS)
    buffers = Buffers()
    columns = RecordColumns(settings, buffers)
    for number, raw in enumerate(raws):
        path = root / f"{number}.log"
        path.write_bytes(raw)
        with WindowReader(str(path), int.from_bytes(raw[:8], "big"), buffers) as reader:
            for window in reader.windows(0, len(raw)):
                for run in payloads(window, buffers):
                    columns.parse(window, run, map_offsets)
    return columns


def expected_state(made: ReferenceBatch, key: bytes | None, value: bytes | None) -> int:
    if made.is_control:
        return CONTROL_RECORD
    state = TOMBSTONE if value is None else 0
    return state | (NULL_KEY if key is None else IN_MAP)


def test_every_record_has_its_offset_state_and_key(tmp_path: Path) -> None:
    """Of data alone; that a horizon has passed is for the tests of the kernel."""
    sources = [made for made in random_batches(Random(3), 40) if not made.is_control]
    raws = [
        encode(made) if number % 2 else packed(made, Codec.ZSTD)
        for number, made in enumerate(sources)
    ]
    columns = columns_of(tmp_path, raws, EVERY_OFFSET)
    records = [(made, found) for made in sources for found in made.records]
    assert columns.filled == len(records)
    first, second, offsets, states = columns.room_for(0)
    filled = slice(0, columns.filled)
    assert offsets[filled].tolist() == [found.offset for _, found in records]
    assert states[filled].tolist() == [
        expected_state(made, found.key, found.value) for made, found in records
    ]
    keys: dict[bytes, tuple[int, int]] = {}
    hashes = zip(first[filled].tolist(), second[filled].tolist(), strict=True)
    for (_, found), its in zip(records, hashes, strict=True):
        if found.key is not None:
            assert keys.setdefault(found.key, its) == its, "one key, one hash"
    assert len(set(keys.values())) == len(keys)


def test_only_what_the_map_covers_is_marked(tmp_path: Path) -> None:
    columns = columns_of(tmp_path, [encode(keyed(3, "abcd"))], (4, 6))
    *_, states = columns.room_for(0)
    assert [bool(state & IN_MAP) for state in states[:4].tolist()] == [False, True, True, False]
    assert not any(state & REASON_MASK for state in states[:4].tolist())


def test_the_error_of_a_record_that_does_not_parse_names_file_and_batch(tmp_path: Path) -> None:
    sound = batch(record(0, b"a"))
    bad = encode_parts(batch(record(1, b"b"), record(2, b"c")), b"\2" * 20)
    with pytest.raises(CorruptFileError, match=rf"{tmp_path}/1\.log, byte 0: record 0 of the"):
        columns_of(tmp_path, [encode(sound), bad], EVERY_OFFSET)


def test_the_hash_is_that_of_the_key_of_the_round(tmp_path: Path) -> None:
    raw = encode(keyed(0, "a"))
    one = columns_of(tmp_path, [raw], EVERY_OFFSET).room_for(0)[0][0]
    settings = settings_in(tmp_path / "work", NOW_MS)._replace(hash_key_low=HASH_KEY[0] + 1)
    other = RecordColumns(settings, Buffers())
    with WindowReader(str(tmp_path / "0.log"), 0, other.buffers) as reader:
        for window in reader.windows(0, len(raw)):
            for run in payloads(window, other.buffers):
                other.parse(window, run, EVERY_OFFSET)
    assert other.room_for(0)[0][0] != one
