"""What was written is read back before it counts; its indexes are made of what was read."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xxhash

from cleaner_jobs.messages import RoundSettings
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.tasks.cleaned_segment import WrittenLogFile, read_back
from cleaner_jobs.tasks.rewrite_check import WrittenBatches, heads_of
from cleaner_jobs.tasks.segment_facts import (
    BATCH_FACTS,
    BatchFacts,
    FactsFile,
    FinishedIndexes,
    IndexesInMaking,
    facts_in,
    finish_like,
    write_like,
)
from cleaner_jobs.tasks.window_reader import RecordColumns
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.file_attributes import attributes_of
from storage.formats import batch_windows
from storage.formats.batch_windows import Buffers
from tests.support.local_round import HASH_KEY
from tests.support.made_log import NOW_MS, keyed, packed
from tests.support.reference_batch import ReferenceBatch, encode
from tests.support.reference_files import indexes

SETTINGS = RoundSettings("run", "", NOW_MS, *HASH_KEY, False)
BATCHES = [
    encode(keyed(5, "ab.")),
    packed(keyed(8, "abcdABCD" * 20), Codec.ZSTD),
    encode(ReferenceBatch(200, 209, 0, 0, -1, 5000)),
    encode(keyed(300, "ab" * 100)),
]


def batches_in(path: str) -> WrittenBatches:
    """As whoever wrote them would know them."""
    found, data = WrittenBatches(), np.fromfile(path, np.uint8)
    found.heads, found.batches = heads_of(data, 0, len(data))
    found.recompressed = bytearray(max(found.batches, len(BATCHES)))
    return found


def read_whole(
    path: str, base_offset: int, take_facts: Callable[[BatchFacts], None]
) -> WrittenLogFile:
    columns = RecordColumns(SETTINGS, Buffers())
    return read_back(path, base_offset, columns, batches_in(path), take_facts)


def ignored(_: BatchFacts) -> None:
    """Where the facts do not matter."""


def written(path: Path, batches: list[bytes] = BATCHES) -> str:
    path.write_bytes(b"".join(batches))
    return str(path)


@pytest.mark.parametrize("window_bytes", [1, 500, 1 << 24])
def test_what_stands_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window_bytes: int
) -> None:
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", window_bytes)
    path = written(tmp_path / "5.log")
    facts = tmp_path / "facts"
    with FactsFile(str(facts)) as out:
        found = read_whole(path, 5, out.add)
    data = b"".join(BATCHES)
    assert (found.log_bytes, found.log_checksum) == (len(data), xxhash.xxh3_64_intdigest(data))
    assert found.records == 3 + 160 + 200
    told = facts_in(str(facts), out.checksum())
    assert [fact for some in told for fact in some.tolist()] == [
        (len(BATCHES[0]), 7, 170, 5),
        (len(BATCHES[1]), 167, 100 + 1670, 8),
        (61, 209, 5000, 200),
        (len(BATCHES[3]), 499, 100 + 4990, 300),
    ]


@pytest.mark.parametrize("cut_bytes", [1, 32, 96, 128])
def test_facts_cut_short_are_noticed(tmp_path: Path, cut_bytes: int) -> None:
    """Four batches of 32 bytes."""
    path, facts = written(tmp_path / "5.log"), tmp_path / "facts"
    with FactsFile(str(facts)) as out:
        read_whole(path, 5, out.add)
    facts.write_bytes(facts.read_bytes()[:-cut_bytes])
    with pytest.raises(WorkFileError, match="facts of batches are not what was written"):
        list(facts_in(str(facts), out.checksum()))


def test_fingerprints_tell_keys_and_offsets_apart(tmp_path: Path) -> None:
    def of(batches: list[bytes]) -> int:
        path = written(tmp_path / "0.log", batches)
        return read_whole(path, 0, ignored).fingerprints

    one = of([encode(keyed(0, "ab"))])
    assert one == of([packed(keyed(0, "ab"), Codec.LZ4)])
    assert len({one, of([encode(keyed(0, "ba"))]), of([encode(keyed(1, "ab"))])}) == 3
    assert one != of([encode(keyed(0, "ab")), encode(keyed(2, "a"))])


@pytest.mark.parametrize("at", [3, 10, 16, 18, 60, 70, -1])
def test_damage_is_noticed(tmp_path: Path, at: int) -> None:
    damaged = bytearray(BATCHES[3])
    damaged[at] ^= 0x40
    path = written(tmp_path / "5.log", [*BATCHES[:3], bytes(damaged)])
    position = sum(map(len, BATCHES[:3]))
    with pytest.raises(CorruptFileError) as caught:
        read_whole(path, 5, ignored)
    assert (caught.value.path, caught.value.position) == (path, position)


def made(path: str, interval_bytes: int, index_bytes: int) -> FinishedIndexes:
    making = IndexesInMaking("5.log", 5, (interval_bytes, index_bytes))
    read_whole(path, 5, making.add)
    return making.finish()


@pytest.mark.parametrize("batches_at_once", [1, 2, 3, 1 << 16])
def test_indexes_are_those_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches_at_once: int
) -> None:
    """C-13.2, C-14.2."""
    monkeypatch.setattr(batch_windows, "WINDOW_BATCHES", batches_at_once)
    path = written(tmp_path / "5.log")
    for interval_bytes in (0, 100, 1000, 4096):
        assert made(path, interval_bytes, 1 << 20)[:2] == indexes(BATCHES, 5, interval_bytes)


def test_memory_does_not_grow_with_the_batches_of_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment of 1 GiB may have ten million batches of a record each."""
    monkeypatch.setattr(batch_windows, "WINDOW_BATCHES", 100)
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", 1 << 14)
    path = written(tmp_path / "0.log", [encode(keyed(i, "a")) for i in range(4000)])
    buffers = Buffers()

    def peak_bytes() -> int:
        making = IndexesInMaking(path, 0, (4096, 1 << 20))
        columns, written = RecordColumns(SETTINGS, buffers), batches_in(path)
        tracemalloc.start()
        read_back(path, 0, columns, written, making.add)
        making.finish()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes()  # makes what a worker keeps
    assert peak_bytes() < 4000 * BATCH_FACTS.itemsize


def test_indexes_without_room_are_made_sparse(tmp_path: Path) -> None:
    """C-13.7: three offset entries of 8 bytes, three time entries of 12.

    Kafka's cleaner stops where one of them has no room. Which entries stay is a hand count.
    """
    path = written(tmp_path / "5.log")
    offsets, times = indexes(BATCHES, 5, 0)
    assert (len(offsets), len(times)) == (24, 36)
    assert made(path, 0, 48) == (offsets, times, False)
    assert made(path, 0, 36) == (offsets, times, True)  # full, a slot is kept for a final entry
    assert made(path, 0, 35) == (offsets, times[12:], True)
    assert made(path, 0, 24) == (offsets, times[12:], True)
    assert made(path, 0, 23) == (offsets[8:16], times[-12:], True)
    assert made(path, 0, 16) == (offsets[8:16], times[-12:], True)
    assert made(path, 0, 8) == (offsets[8:16], times[-12:], True)
    assert made(path, 0, 4) == (b"", times[-12:], True)


def test_no_index_holds_an_offset_that_is_too_far(tmp_path: Path) -> None:
    path = written(tmp_path / "5.log", [encode(keyed(5, "ab"))])
    making = IndexesInMaking("5.log", 7, (0, 100))
    read_whole(path, 5, making.add)
    with pytest.raises(UnsupportedFormatError, match=r"5\.log, byte 0: .* cannot be indexed"):
        making.finish()


def test_files_get_owner_mode_and_time_of_their_model(tmp_path: Path) -> None:
    """C-14.3: the time in whole milliseconds."""
    model = tmp_path / "model"
    model.write_bytes(b"")
    model.chmod(0o640)
    os.utime(model, ns=(5, 1_600_000_000_123_456_789))
    if os.getuid() == 0:
        os.chown(model, 1234, 4321)
    path = tmp_path / "file"
    write_like(str(path), b"abc", attributes_of(str(model)))
    stat = path.stat()
    assert path.read_bytes() == b"abc"
    assert stat.st_mtime_ns == 1_600_000_000_123_000_000
    assert stat.st_mode & 0o7777 == 0o640
    assert (stat.st_uid, stat.st_gid) == (model.stat().st_uid, model.stat().st_gid)
    with pytest.raises(FileExistsError):
        write_like(str(path), b"", attributes_of(str(model)))
    with open(path, "r+b") as out:
        finish_like(out.fileno(), attributes_of(str(model)))
    assert path.stat().st_mtime_ns == 1_600_000_000_123_000_000
