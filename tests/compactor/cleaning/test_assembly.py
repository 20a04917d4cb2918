"""Pieces of a group become one staged segment, or none and an error."""

import errno
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from io import FileIO
from pathlib import Path

import numpy as np
import pytest
import xxhash

from cleaner_jobs.messages import Rewritten, Source
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.tasks.segment_facts import BATCH_FACTS
from cleaner_jobs.work_file import write_checked
from compactor.cleaning.assembly import EarlyJoin, joined_segments
from compactor.finalizer import StagedSegment
from compactor.planning.layout import sources_of
from storage.errors import CorruptFileError
from storage.files.disk_hints import background_closes_deferred, close_in_background
from storage.files.file_attributes import attributes_of
from storage.files.local import LocalFiles
from storage.formats import segment_indexes
from tests.support.made_log import (
    INTERVAL_BYTES,
    MTIME_NS,
    files_of,
    index_entry,
    keyed,
    make_partition,
    plan_of,
)
from tests.support.made_values import rewritten
from tests.support.reference_batch import decode, encode
from tests.support.reference_files import indexes

BATCHES = [encode(keyed(offset, "abcdefghij" * 20)) for offset in range(0, 1200, 200)]
RUNS = [BATCHES[:1], BATCHES[1:4], [], BATCHES[4:]]


def piece(work_dir: Path, number: int, batches: list[bytes]) -> Rewritten:
    """As a rewrite task leaves it; the second piece of a group without records is empty."""
    log, facts = work_dir / f"{number}.log", work_dir / f"{number}.facts"
    data = b"".join(batches)
    log.write_bytes(data)
    headers = [
        (len(raw), made.last_offset, made.max_timestamp, made.base_offset)
        for raw, made in zip(batches, map(decode, batches), strict=True)
    ]
    told = np.array(headers, BATCH_FACTS).tobytes()
    facts.write_bytes(told)
    checksum = xxhash.xxh3_64_intdigest(data)
    return rewritten(
        number=number,
        log_file=str(log),
        facts_file=str(facts),
        log_bytes=len(data),
        log_checksum=checksum,
        facts_checksum=xxhash.xxh3_64_intdigest(told),
    )


class Group:
    def __init__(self, root: Path) -> None:
        self.partition = make_partition(root / "logs", {0: BATCHES[:3], 600: BATCHES[3:], 1200: []})
        self.work_dir = root / "work"
        self.work_dir.mkdir()
        self.plan = plan_of(self.partition, [[0, 600]], 1200)
        self.sources: tuple[Source, ...] = sources_of(self.plan)[0]
        self.pieces = [piece(self.work_dir, i, run) for i, run in enumerate(RUNS)]
        self.early: tuple[int, ...] = ()  # the pieces that come before the others do, in turn


@pytest.fixture(params=[(), (1, 0), (3, 1, 0, 2)], ids=["late", "some early", "early"])
def group(tmp_path: Path, request: pytest.FixtureRequest) -> Group:
    group = Group(tmp_path)
    group.early = request.param
    return group


def joined(group: Group) -> tuple[StagedSegment, ...]:
    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        for number in group.early:
            join.add(group.pieces[number])
        segments = joined_segments(group.plan, group.sources, group.pieces)
        return join.finish(group.pieces, segments).destinations


def assert_joined(group: Group) -> None:
    (staged,) = joined(group)
    assert (staged.base_offset, staged.txn_index_file) == (0, "")
    offset_index, time_index = indexes(BATCHES, 0, INTERVAL_BYTES)
    assert len(offset_index) > 8  # more than one entry, so that the pieces' edges count
    assert Path(staged.log_file).read_bytes() == b"".join(BATCHES)
    assert Path(staged.index_file).read_bytes() == offset_index
    assert Path(staged.time_index_file).read_bytes() == time_index
    for path in (staged.log_file, staged.index_file, staged.time_index_file):
        name = os.path.basename(path)
        assert name.startswith("0" * 20) and name.endswith(".compactor-run-joined")
        assert os.path.dirname(path) == str(group.partition)
        assert os.stat(path).st_mtime_ns == MTIME_NS + 600 * 7_000_000  # of the last source, C-14.3


def test_pieces_are_joined_with_indexes_over_their_edges(group: Group) -> None:
    """C-13.3: bytes since the last entry, and the largest timestamp, go on across pieces."""
    assert_joined(group)


def test_the_file_of_the_first_piece_becomes_the_joined_one(group: Group) -> None:
    inode = os.stat(group.pieces[0].log_file).st_ino
    (staged,) = joined(group)
    assert os.stat(staged.log_file).st_ino == inode
    left = [Path(each.log_file).exists() for each in group.pieces]
    assert left == [False, True, True, True]


def test_pieces_that_are_copied_give_up_what_is_joined(group: Group) -> None:
    joined(group)
    for each in group.pieces[1:]:
        assert Path(each.log_file).read_bytes() == bytes(each.log_bytes)


@pytest.mark.parametrize("why", ["another file system", "longer", "an attribute"])
def test_or_it_is_copied(group: Group, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """It cannot be renamed; it is not what was written; it was born with what the log's lack."""
    path = Path(group.pieces[0].log_file)
    if why == "another file system":

        def refuse(*_: object) -> None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(LocalFiles, "rename", refuse)
    elif why == "longer":
        path.write_bytes(path.read_bytes() + b"x")
    else:
        own = attributes_of(str(path))._replace(extended=(("user.own", b"1"),))
        changed = staticmethod(lambda f: own if f == str(path) else attributes_of(f))
        monkeypatch.setattr(LocalFiles, "attributes_of", changed)
    assert_joined(group)
    assert path.exists()


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_bit_that_flips_in_any_piece_is_noticed(group: Group, number: int) -> None:
    """In that whose file is taken over, too."""
    before = files_of(group.partition)
    path = Path(group.pieces[number].log_file)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match="not what was written"):
        joined(group)
    assert files_of(group.partition) == before


def with_aborted(group: Group, *last_offsets: int) -> list[bytes]:
    """Let the driver have left a `.txnindex` for the group, with markers at these offsets."""
    entries = [index_entry(7, offset - 3, offset, offset + 1) for offset in last_offsets]
    path = group.work_dir / "0-group-0"
    write_checked(str(path), b"".join(entries))
    group.pieces = [piece._replace(txn_index_file=str(path)) for piece in group.pieces]
    return entries


def test_joined_pieces_have_the_transaction_index_of_their_group(group: Group) -> None:
    """C-8.8: one for the destination, not one for each piece."""
    entries = with_aborted(group, 5, 900)
    (staged,) = joined(group)
    assert os.path.basename(staged.txn_index_file).startswith(f"{0:020}.txnindex.compactor-run-")
    assert Path(staged.txn_index_file).read_bytes() == b"".join(entries)
    assert os.stat(staged.txn_index_file).st_mtime_ns == MTIME_NS + 600 * 7_000_000


def test_a_segment_that_is_cut_has_the_entries_of_its_own_markers(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-11.2: segments from 0, 400 and 800; a transaction may begin in the one before."""
    monkeypatch.setattr(segment_indexes, "MAX_LOG_BYTES", 2 * max(map(len, BATCHES)))
    entries = with_aborted(group, 5, 399, 400, 402)
    found = [
        Path(staged.txn_index_file).read_bytes() if staged.txn_index_file else None
        for staged in joined(group)
    ]
    assert found == [b"".join(entries[:2]), b"".join(entries[2:]), None]


def test_a_damaged_transaction_index_leaves_nothing(group: Group) -> None:
    before = files_of(group.partition)
    with_aborted(group, 5)
    path = Path(group.pieces[0].txn_index_file)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="not what was written"):
        joined(group)
    assert files_of(group.partition) == before


@pytest.mark.parametrize(
    "code", [errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL], ids=errno.errorcode.get
)
def test_pieces_are_joined_where_files_cannot_be_shared(
    group: Group, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """The work directory is on another file system, or the log's knows no such call."""

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    assert_joined(group)


def test_a_copy_that_takes_less_at_a_time_goes_on(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy: Callable[[int, int, int], int] = os.copy_file_range
    monkeypatch.setattr(os, "copy_file_range", lambda i, o, left: copy(i, o, min(left, 1000)))
    assert_joined(group)


def damaged(group: Group, what: str) -> None:
    path = Path(group.pieces[1].log_file)
    if what == "flipped":
        data = bytearray(path.read_bytes())
        data[700] ^= 1
        path.write_bytes(data)
    elif what == "short":
        path.write_bytes(path.read_bytes()[:-1])
    elif what == "swapped":
        group.pieces[0], group.pieces[1] = group.pieces[1], group.pieces[0]
    elif what.endswith("facts"):  # without these batches nobody would miss their bytes
        name, rows = what.split(",")[0], 1 if "first" in what else 0
        facts = Path(group.pieces[["begin", "middle", "empty", "end"].index(name)].facts_file)
        facts.write_bytes(facts.read_bytes()[: rows * BATCH_FACTS.itemsize])


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("flipped", "not what was written"),
        ("short", "cut short"),
        ("swapped", "out of order"),
        ("middle, only the first facts", "facts of batches are not what was written"),
        ("middle, no facts", "facts of batches are not what was written"),
        ("end, only the first facts", "facts of batches are not what was written"),
        ("end, no facts", "facts of batches are not what was written"),
    ],
)
def test_damaged_pieces_leave_nothing(group: Group, what: str, problem: str) -> None:
    before = files_of(group.partition)
    damaged(group, what)
    with pytest.raises(CorruptFileError, match=problem):
        joined(group)
    assert files_of(group.partition) == before


def test_what_is_staged_is_on_disk(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, synced = os.fsync, set[str]()

    def note(descriptor: int) -> None:
        sync(descriptor)
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", note)
        (segment,) = joined(group)
    assert len(segment.files) >= 3 and synced == set(segment.files.values())


@pytest.mark.parametrize("kind", [".index", ".timeindex", ".log"])
def test_a_file_that_cannot_be_synced_leaves_nothing(
    group: Group, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    before, sync = files_of(group.partition), os.fsync

    def fail(descriptor: int) -> None:
        if kind in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            joined(group)
    assert files_of(group.partition) == before


def test_a_full_disk_leaves_nothing(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files_of(group.partition)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(OSError, match="No space"):
        joined(group)
    assert files_of(group.partition) == before


def test_a_disk_that_is_full_of_removed_files_is_not(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are open yet, and closed for whoever needs their room."""
    freed: list[bool] = []
    copy: Callable[[int, int, int], int] = os.copy_file_range

    def full_till_then(source: int, target: int, log_bytes: int) -> int:
        if not freed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return copy(source, target, log_bytes)

    monkeypatch.setattr(os, "copy_file_range", full_till_then)
    with background_closes_deferred():
        close_in_background([lambda: freed.append(True)])
        assert_joined(group)


def test_indexes_without_room_are_made_sparse_by_the_whole_group(group: Group) -> None:
    """C-13.7: the whole group's entries count, not those of a piece."""
    small = replace(group.plan, segment_index_bytes=12)
    (segment,) = joined_segments(small, group.sources, group.pieces)
    offset_index, time_index = indexes(BATCHES, 0, INTERVAL_BYTES)
    assert segment.indexes.sparse and len(offset_index) > 12
    assert len(segment.indexes.offset_index) == 8
    assert segment.indexes.offset_index in [offset_index[i : i + 8] for i in range(0, 80, 8)]
    assert segment.indexes.time_index == time_index[-12:]
    (segment,) = joined_segments(group.plan, group.sources, group.pieces)
    assert not segment.indexes.sparse


@pytest.mark.parametrize(
    ("room", "starts"),
    [
        (6, [0]),
        (5, [0, 5]),  # within the last piece
        (4, [0, 4]),  # between two pieces
        (3, [0, 3]),
        (2, [0, 2, 4]),
        (1, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_what_is_too_long_for_a_segment_is_cut_at_a_batch(
    group: Group, monkeypatch: pytest.MonkeyPatch, room: int, starts: list[int]
) -> None:
    """C-13.7: Kafka's cleaner stops at 2 GiB. room: for so many of the largest batches."""
    sizes = [len(raw) for raw in BATCHES]
    assert max(sizes) < 1.2 * min(sizes)
    monkeypatch.setattr(segment_indexes, "MAX_LOG_BYTES", room * max(sizes))
    staged = joined(group)
    assert [segment.base_offset for segment in staged] == [200 * start for start in starts]
    for segment, start, end in zip(staged, starts, [*starts[1:], len(BATCHES)], strict=True):
        offset_index, time_index = indexes(BATCHES[start:end], 200 * start, INTERVAL_BYTES)
        assert Path(segment.log_file).read_bytes() == b"".join(BATCHES[start:end])
        assert Path(segment.index_file).read_bytes() == offset_index
        assert Path(segment.time_index_file).read_bytes() == time_index
        assert os.path.basename(segment.log_file).startswith(f"{200 * start:020d}.log")


def test_damage_in_a_piece_that_is_cut_is_noticed(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_indexes, "MAX_LOG_BYTES", 2 * len(BATCHES[0]))
    before = files_of(group.partition)
    damaged(group, "flipped")
    with pytest.raises(CorruptFileError, match="not what was written"):
        joined(group)
    assert files_of(group.partition) == before


STAGED = f"{0:020}.log.compactor-run-joined"


def test_pieces_are_joined_as_far_as_none_is_missing(tmp_path: Path) -> None:
    group = Group(tmp_path)
    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        for number, batches in ((1, []), (0, BATCHES[:4]), (3, BATCHES[:4]), (2, BATCHES)):
            join.add(group.pieces[number])
            path = group.partition / STAGED
            assert (path.read_bytes() if path.exists() else b"") == b"".join(batches)


@pytest.mark.parametrize("early", [(), (0, 1), (1,), (0, 1, 2, 3)])
def test_of_a_group_that_is_never_finished_nothing_is_left(
    tmp_path: Path, early: tuple[int, ...]
) -> None:
    group = Group(tmp_path)
    before = files_of(group.partition)
    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        for number in early:
            join.add(group.pieces[number])
    join.add(group.pieces[2])  # by a thread that comes late
    assert files_of(group.partition) == before


def test_what_goes_wrong_early_makes_room_at_once_and_is_raised_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(tmp_path)
    before = files_of(group.partition)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        with monkeypatch.context() as patch:
            patch.setattr(os, "copy_file_range", full)
            for each in group.pieces:
                join.add(each)
        assert files_of(group.partition) == before
        segments = joined_segments(group.plan, group.sources, group.pieces)
        with pytest.raises(OSError, match="No space"):
            join.finish(group.pieces, segments)


def test_so_is_what_is_no_fault_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when a piece is copied and not yet counted: it must not be put there once more."""
    group = Group(tmp_path)
    before = files_of(group.partition)

    def fail(*_: object) -> None:
        raise MemoryError

    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        join.add(group.pieces[0])
        with monkeypatch.context() as patch:
            assert join._log is not None
            patch.setattr(join._log._writeback, "submit", fail)
            with pytest.raises(MemoryError):
                join.add(group.pieces[1])
        segments = joined_segments(group.plan, group.sources, group.pieces)
        with pytest.raises(MemoryError):
            join.finish(group.pieces, segments)
    assert files_of(group.partition) == before


@pytest.mark.parametrize("way", ["changed", "cut", "hollow"])
@pytest.mark.parametrize("early", [1, 2, 3])
def test_what_somebody_does_to_it_between_two_pieces_is_noticed(
    tmp_path: Path, way: str, early: int
) -> None:
    group = Group(tmp_path)
    before, path = files_of(group.partition), group.partition / STAGED
    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        for piece in group.pieces[:early]:
            join.add(piece)
        data = path.read_bytes()
        half = len(data) // 2
        other = {"changed": data[:-1] + b"?", "cut": data[:half]}
        path.write_bytes(other.get(way, data[:half] + bytes(len(data) - half)))
        segments = joined_segments(group.plan, group.sources, group.pieces)
        with pytest.raises(CorruptFileError, match=STAGED):
            join.finish(group.pieces, segments)
    assert files_of(group.partition) == before


@pytest.mark.parametrize("more", [b"", b"x"])
def test_a_joined_log_is_as_long_as_its_pieces(tmp_path: Path, more: bytes) -> None:
    """Every piece is there, and right; and something stands behind them."""
    group = Group(tmp_path)
    with closing(EarlyJoin(group.plan, group.sources, "run")) as join:
        for each in group.pieces:
            join.add(each)
        staged = group.partition / STAGED
        with staged.open("ab") as file:  # what stands there is being read back meanwhile
            file.write(more)
        segments = joined_segments(group.plan, group.sources, group.pieces)
        if not more:
            join.finish(group.pieces, segments)
            return
        size = sum(map(len, BATCHES))
        with pytest.raises(WorkFileError, match=f"{size + 1} bytes are there, {size} were") as told:
            join.finish(group.pieces, segments)
        assert (told.value.path, told.value.position) == (str(staged), size)


def test_an_error_of_the_disk_at_the_end_of_what_is_given_up_is_nobodys(tmp_path: Path) -> None:
    group = Group(tmp_path)
    before = files_of(group.partition)
    join = EarlyJoin(group.plan, group.sources, "run")
    join.add(group.pieces[0])
    assert join._log is not None and join._log._out is not None

    class Broken(FileIO):
        def close(self) -> None:
            was_open = not self.closed
            super().close()
            if was_open:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    join._log._out.close()
    join._log._out = Broken(group.partition / STAGED, "r+b")
    join.close()
    assert files_of(group.partition) == before
