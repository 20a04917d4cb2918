"""Verdicts on the records of a log, however many turns a hash partition takes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cleaner_jobs.messages import ENTRY_BYTES, Part, Verdict
from cleaner_jobs.tasks import resolve
from cleaner_jobs.tasks.resolve import dropped_from, resolve_hash_partition
from cleaner_jobs.work_file import WorkFiles
from storage.errors import CorruptFileError
from storage.formats.batch_windows import Buffers
from tests.cleaner_jobs.tasks.test_scan import Scanner
from tests.support.made_log import NOW_MS, batch, keyed, record
from tests.support.reference_batch import HORIZON, ReferenceBatch


def parts_of(root: Path, groups: Sequence[Sequence[ReferenceBatch]], bits: int) -> list[Part]:
    """A part for each group of a log."""
    scanner = Scanner(root)
    scanner.bits = bits
    scanner.first_dirty_offset = 4
    stretches = [
        stretch
        for number, batches in enumerate(groups)
        for stretch in scanner.segment(batches, group=number)
    ]
    return scanner.scan(*stretches).parts


def resolved(root: Path, parts: Sequence[Part]) -> list[Verdict]:
    path = str(root / "out.verdicts")
    hash_partitions = 1 << parts[0].hash_partition_bits
    with WorkFiles() as files, open(path, "wb", buffering=0) as out:
        return [
            resolve_hash_partition(parts, hash_partition, files, (out, path), Buffers())
            for hash_partition in range(hash_partitions)
        ]


def dropped(verdicts: Sequence[Verdict], part: int) -> list[int]:
    with WorkFiles() as files:
        return sorted(
            ordinal
            for v in verdicts
            for ordinal in dropped_from(files, v, part).superseded.tolist()
        )


EXPIRED = batch(record(4, b"b", None), record(5, b"x", None), attributes=HORIZON, base_timestamp=0)
GROUPS = [
    [keyed(0, "abca")],  # clean: only looked up
    [EXPIRED],  # b goes for being superseded, x for its age
    [keyed(6, "ay.B")],
    [keyed(10, "yzb" + "k" * 50 + "y")],
]


@pytest.mark.parametrize("bits", [0, 1, 3])
@pytest.mark.parametrize("merge_entries", [1, 2, 3, 1 << 21])
def test_what_a_later_part_supersedes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int, merge_entries: int
) -> None:
    """a 0, 3 by 6; b 1, 4, 9 by 12; y 7 by 63 and 10 within its part; c, z, k stay (E-13)."""
    assert NOW_MS > 0
    monkeypatch.setattr(resolve, "MERGE_ENTRIES", merge_entries)
    parts = parts_of(tmp_path, GROUPS, bits)
    verdicts = resolved(tmp_path, parts)
    assert [dropped(verdicts, number) for number in range(4)] == [[0, 1, 3], [0], [1, 3], []]
    assert sum(v.superseded for v in verdicts) == 6
    assert sum(v.expired for v in verdicts) == 1
    assert [v.hash_partition for v in verdicts] == list(range(1 << bits))
    assert {v.parts for v in verdicts} == {4}


def test_fingerprints_are_the_same_however_the_map_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = set()
    for bits, merge_entries in [(0, 1 << 21), (0, 1), (3, 1 << 21), (3, 2)]:
        monkeypatch.setattr(resolve, "MERGE_ENTRIES", merge_entries)
        root = tmp_path / f"{bits}-{merge_entries}"
        root.mkdir()
        verdicts = resolved(root, parts_of(root, GROUPS, bits))
        sums.add(sum(v.dropped_fingerprints for v in verdicts) % 2**64)
        assert all(0 <= v.dropped_fingerprints < 2**64 for v in verdicts)
    assert len(sums) == 1 and sums != {0}


def test_a_log_without_keys_has_empty_verdicts(tmp_path: Path) -> None:
    """C-7.12."""
    parts = parts_of(tmp_path, [[keyed(0, "..")], [ReferenceBatch(9, 9, 0, 0, -1, -1)]], 1)
    verdicts = resolved(tmp_path, parts)
    assert [(v.superseded, v.expired, v.dropped_fingerprints) for v in verdicts] == [(0, 0, 0)] * 2
    assert dropped(verdicts, 0) == dropped(verdicts, 1) == []


def test_a_damaged_verdict_is_noticed(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, GROUPS, 0)
    (verdict,) = resolved(tmp_path, parts)
    path = Path(verdict.file)
    whole = path.read_bytes()
    assert len(whole) == 5 * 32 + 6 * 4
    for at in [0, 8, 32, 5 * 32, len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        with WorkFiles() as files, pytest.raises(CorruptFileError, match=r"out\.verdicts"):
            for number in range(3):
                dropped_from(files, verdict, number)
    for kept in range(len(whole)):
        path.write_bytes(whole[:kept])
        with WorkFiles() as files, pytest.raises(CorruptFileError):
            for number in range(4):
                dropped_from(files, verdict, number)


@pytest.mark.parametrize("at", [0, 32])  # where the ordinals of parts 0 and 1 start
@pytest.mark.parametrize("byte", range(8))
def test_a_verdict_leads_nowhere_else(tmp_path: Path, at: int, byte: int) -> None:
    """No checksum covers the places of ordinals but that of the ordinals themselves."""
    parts = parts_of(tmp_path, GROUPS, 0)
    (verdict,) = resolved(tmp_path, parts)
    path = Path(verdict.file)
    damaged = bytearray(path.read_bytes())
    damaged[at + byte] ^= 0x80
    path.write_bytes(damaged)
    with WorkFiles() as files, pytest.raises(CorruptFileError, match="not what was written"):
        for number in range(2):
            dropped_from(files, verdict, number)


@pytest.mark.parametrize("byte", range(16))
def test_neither_do_the_edges_of_a_hash_partition(tmp_path: Path, byte: int) -> None:
    parts = parts_of(tmp_path, GROUPS, 0)
    path = Path(parts[0].file)
    damaged = bytearray(path.read_bytes())
    damaged[parts[0].block_at + parts[0].entries * ENTRY_BYTES + byte] ^= 0x80
    path.write_bytes(damaged)
    with pytest.raises(CorruptFileError, match="not what was written"):
        resolved(tmp_path, parts)


def test_many_verdicts_share_a_file(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, GROUPS, 3)
    verdicts = resolved(tmp_path, parts)
    assert len({v.file for v in verdicts}) == 1
    assert len({v.block_at for v in verdicts}) == 8
