"""What was written is read back before it counts; its indexes are made of what was read."""

import os
from pathlib import Path

import pytest
import xxhash

from cleaner_jobs import batch_window
from cleaner_jobs.cleaned_segment import finish_like, indexes_of, read_back, write_like
from cleaner_jobs.task_values import RoundSettings
from cleaner_jobs.worker_buffers import WorkerBuffers
from storage.compression import Codec
from storage.errors import CorruptFileError, UnsupportedFormatError
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


def written(path: Path, batches: list[bytes] = BATCHES) -> str:
    path.write_bytes(b"".join(batches))
    return str(path)


@pytest.mark.parametrize("window_bytes", [1, 500, 1 << 24])
def test_what_stands_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window_bytes: int
) -> None:
    monkeypatch.setattr(batch_window, "WINDOW_BYTES", window_bytes)
    path = written(tmp_path / "5.log")
    found = read_back(path, 5, SETTINGS, WorkerBuffers())
    data = b"".join(BATCHES)
    assert (found.log_bytes, found.log_checksum) == (len(data), xxhash.xxh3_64_intdigest(data))
    assert found.records == 3 + 160 + 200
    assert found.facts.tolist() == [
        (len(BATCHES[0]), 7, 170),
        (len(BATCHES[1]), 167, 100 + 1670),
        (61, 209, 5000),
        (len(BATCHES[3]), 499, 100 + 4990),
    ]


def test_fingerprints_tell_keys_and_offsets_apart(tmp_path: Path) -> None:
    def of(batches: list[bytes]) -> int:
        path = written(tmp_path / "0.log", batches)
        return read_back(path, 0, SETTINGS, WorkerBuffers()).fingerprints

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
        read_back(path, 5, SETTINGS, WorkerBuffers())
    assert (caught.value.path, caught.value.position) == (path, position)


def test_indexes_are_those_of_the_reference(tmp_path: Path) -> None:
    """C-13.2, C-14.2."""
    facts = read_back(written(tmp_path / "5.log"), 5, SETTINGS, WorkerBuffers()).facts
    for interval_bytes in (0, 100, 1000, 4096):
        found = indexes_of(facts, "5.log", 5, (interval_bytes, 1 << 20))
        assert found[:2] == indexes(BATCHES, 5, interval_bytes)


def test_indexes_without_room_are_named(tmp_path: Path) -> None:
    """C-13.7: three offset entries of 8 bytes."""
    facts = read_back(written(tmp_path / "5.log"), 5, SETTINGS, WorkerBuffers()).facts
    assert len(indexes(BATCHES, 5, 0)[0]) == 24
    indexes_of(facts, "5.log", 5, (0, 48))
    with pytest.raises(UnsupportedFormatError, match=r"5\.log, byte 0: .* cannot be indexed"):
        indexes_of(facts, "5.log", 5, (0, 23))


def test_files_get_owner_mode_and_time_of_their_model(tmp_path: Path) -> None:
    """C-14.3: the time in whole milliseconds."""
    model = tmp_path / "model"
    model.write_bytes(b"")
    model.chmod(0o640)
    os.utime(model, ns=(5, 1_600_000_000_123_456_789))
    if os.getuid() == 0:
        os.chown(model, 1234, 4321)
    path = tmp_path / "file"
    write_like(str(path), b"abc", model.stat())
    stat = path.stat()
    assert path.read_bytes() == b"abc"
    assert stat.st_mtime_ns == 1_600_000_000_123_000_000
    assert stat.st_mode & 0o7777 == 0o640
    assert (stat.st_uid, stat.st_gid) == (model.stat().st_uid, model.stat().st_gid)
    with pytest.raises(FileExistsError):
        write_like(str(path), b"", model.stat())
    with open(path, "r+b") as out:
        finish_like(out.fileno(), model.stat())
    assert path.stat().st_mtime_ns == 1_600_000_000_123_000_000
