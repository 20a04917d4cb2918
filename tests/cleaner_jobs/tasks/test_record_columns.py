"""Columns of parsed records grow run by run, and hold what the slow reader of records finds."""

from pathlib import Path
from random import Random

import pytest

from cleaner_jobs.task_values import RoundSettings
from cleaner_jobs.tasks.batch_window import WindowReader, payloads
from cleaner_jobs.tasks.record_columns import RecordColumns
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats.batch_columns import CONTROL_RECORD, IN_MAP, NULL_KEY, REASON_MASK, TOMBSTONE
from tests.support.local_round import HASH_KEY, settings_in
from tests.support.made_log import batch, keyed, packed, record
from tests.support.random_batches import random_batches
from tests.support.reference_batch import ReferenceBatch, encode, encode_parts

NOW_MS = -10  # every horizon is ahead
EVERY_OFFSET = 0, 2**62


def columns_of(root: Path, raws: list[bytes], map_offsets: tuple[int, int]) -> RecordColumns:
    """Each batch in a file, and so in a window, of its own."""
    settings: RoundSettings = settings_in(root / "work", NOW_MS)
    buffers = WorkerBuffers()
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
    other = RecordColumns(settings, WorkerBuffers())
    with WindowReader(str(tmp_path / "0.log"), 0, other.buffers) as reader:
        for window in reader.windows(0, len(raw)):
            for run in payloads(window, other.buffers):
                other.parse(window, run, EVERY_OFFSET)
    assert other.room_for(0)[0][0] != one
