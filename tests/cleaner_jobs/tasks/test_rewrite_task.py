"""A piece of a group, from verdicts to staged files: against the reference cleaner."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cleaner_jobs import source_identity
from cleaner_jobs.kernels import rewrite_runs
from cleaner_jobs.kernels.batch_comparison import ITS_SIZE
from cleaner_jobs.messages import LogRules, Piece, Rewritten, RoundSettings, Source
from cleaner_jobs.problems import MiswrittenError
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.staging import staged_suffix
from cleaner_jobs.tasks import batch_rewriter, window_reader
from cleaner_jobs.tasks.rewrite_task import PieceContext, rewrite_piece
from cleaner_jobs.work_file import WorkFiles
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.formats import batch_windows
from storage.formats.batch_windows import Buffers
from tests.cleaner_jobs.tasks.test_resolve import resolved
from tests.cleaner_jobs.tasks.test_scan import Scanner
from tests.support.kernel_steps import uncompiled
from tests.support.local_round import settings_in
from tests.support.made_log import INTERVAL_BYTES, NOW_MS, RETENTION_MS, keyed
from tests.support.reference_batch import ReferenceBatch, encode
from tests.support.reference_cleaner import Round, clean
from tests.support.reference_files import indexes

FIRST = [keyed(0, "abca"), keyed(4, "dB")]
SECOND = [keyed(6, "a.c"), keyed(9, "ee")]
NOTHING_GOES = [keyed(0, "ab"), keyed(2, "cd")]
FAR = 1000  # first uncleanable offset: no batch is kept for standing before it


@dataclass
class Group:
    """The segments of one group, scanned and resolved; each run of a piece is an attempt more."""

    root: Path
    segments: Sequence[Sequence[ReferenceBatch]]
    later: Sequence[ReferenceBatch] = ()  # of the group behind it, a part of its own
    dry_run: bool = False
    attempts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        scanner = Scanner(self.root)
        stretches = [
            stretch
            for number, batches in enumerate(self.segments)
            for stretch in scanner.segment(batches, segment=number)
        ]
        self.sources: tuple[Source, ...] = tuple(stretch.source for stretch in stretches)
        if self.later:
            stretches += scanner.segment(self.later, group=1)
        parts = tuple(scanner.scan(*stretches).parts)
        self.piece = Piece(0, 0, 0, 1, parts[:1], 0, self.sources)
        self.log_dir = self.root / "orders-0"
        self.log_dir.mkdir()
        self.rules = LogRules(
            log_id=0,
            path=str(self.log_dir),
            kept_end_offset=FAR,
            delete_retention_ms=RETENTION_MS,
            index_interval_bytes=INTERVAL_BYTES,
            segment_index_bytes=10 << 20,
            active_producers=(),
            verdicts=tuple(resolved(self.root, parts)),
        )

    def rewritten(self) -> Rewritten:
        with self.context() as context:
            return rewrite_piece(self.piece, self.rules, context)

    @contextmanager
    def context(self) -> Iterator[PieceContext]:
        settings: RoundSettings = settings_in(self.root / "work", NOW_MS, self.dry_run)
        self.attempts.append(f"attempt-{len(self.attempts)}")
        with WorkFiles() as files:
            yield PieceContext(settings, self.attempts[-1], files, Buffers())

    def expected(self) -> list[bytes]:
        """Each batch that the reference leaves."""
        batches = [batch for segment in self.segments for batch in segment]
        by = Round(0, FAR, NOW_MS, RETENTION_MS, {})
        cleaned, _ = clean([*batches, *self.later], by)
        end_offset = batches[-1].last_offset
        return [encode(one.batch) for one in cleaned if one.batch.last_offset <= end_offset]

    def files(self) -> list[str]:
        work = self.root / "work" / "pieces"
        return sorted([*os.listdir(self.log_dir), *os.listdir(work)])


@pytest.fixture
def group(tmp_path: Path) -> Group:
    return Group(tmp_path, (FIRST, SECOND))


def test_a_whole_group_is_staged_beside_its_segments(group: Group) -> None:
    found, expected = group.rewritten(), group.expected()
    suffix = staged_suffix("run", group.attempts[-1])
    names = [file_name(0, kind) + suffix for kind in (LOG, INDEX, TIME_INDEX)]
    assert group.files() == sorted(names)
    log, index, time_index = ((group.log_dir / name).read_bytes() for name in names)
    assert log == b"".join(expected)
    assert (index, time_index) == indexes(expected, 0, INTERVAL_BYTES)
    assert [os.path.basename(path) for path in (found.log_file, found.index_file)] == names[:2]
    assert found.log_bytes == len(log)
    assert not found.left_in_place


@pytest.mark.parametrize("chunk_bytes", [100, 300, 1000])
@pytest.mark.parametrize("run_batches", [1, 2, 100])
def test_it_is_the_same_however_much_is_read_at_a_time(
    group: Group, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, run_batches: int
) -> None:
    """By a kernel, and what is too large for that step by step."""
    monkeypatch.setattr(batch_windows, "WINDOW_BATCHES", 1)
    monkeypatch.setattr(window_reader, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(window_reader, "RUN_BATCHES", run_batches)
    assert Path(group.rewritten().log_file).read_bytes() == b"".join(group.expected())


def test_it_is_the_same_where_no_kernel_can_read(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_kernel = group.rewritten()
    monkeypatch.setattr(window_reader, "pread_address", lambda: 0)
    by_steps = group.rewritten()
    assert Path(by_steps.log_file).read_bytes() == b"".join(group.expected())
    names = {"log_file", "index_file", "time_index_file"}
    counts = [
        {k: v for k, v in r._asdict().items() if k not in names} for r in (by_kernel, by_steps)
    ]
    assert counts[0] == counts[1]


def test_what_only_the_kernel_of_a_run_finds_wrong_leaves_nothing(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bit that has turned back before the batches are gone through step by step."""

    def other(*_: object) -> tuple[int, int]:
        return 0, ITS_SIZE

    monkeypatch.setattr(batch_rewriter, "rewrite_plain", uncompiled(rewrite_runs.rewrite_plain))
    monkeypatch.setattr(rewrite_runs, "compare_batches", other)
    with pytest.raises(MiswrittenError, match="sound when they were looked at again"):
        group.rewritten()
    assert group.files() == []


def test_its_records_and_batches_are_counted(group: Group) -> None:
    """By hand: d, the tombstone of b, and the last a, c and e stay; the first batch goes whole."""
    found = group.rewritten()
    assert found.records_kept == 5
    assert (found.batches_kept, found.batches_rebuilt, found.batches_emptied) == (3, 3, 0)
    assert found.dropped == 0, "all that goes is superseded within the part"


def test_what_a_later_part_supersedes_goes_by_the_verdicts(tmp_path: Path) -> None:
    """By hand: of a, c, d, e and the tombstone of b, the later group has a and d once more."""
    group = Group(tmp_path, (FIRST, SECOND), later=[keyed(11, "daf")])
    found = group.rewritten()
    assert Path(found.log_file).read_bytes() == b"".join(group.expected())
    assert (found.records_kept, found.dropped) == (3, 2)


def test_a_dry_run_measures_what_a_run_writes(group: Group) -> None:
    written = group.rewritten()
    for name in os.listdir(group.log_dir):
        (group.log_dir / name).unlink()
    group.dry_run = True
    measured = group.rewritten()
    assert group.files() == []
    assert measured.log_bytes == written.log_bytes
    for name in ("dropped", "dropped_fingerprints", "batches_kept", "batches_rebuilt"):
        assert getattr(measured, name) == getattr(written, name)


def test_a_part_of_a_group_goes_into_the_work_directory(group: Group) -> None:
    group.piece = group.piece._replace(of=2)
    found = group.rewritten()
    assert os.listdir(group.log_dir) == []
    assert Path(found.log_file).read_bytes() == b"".join(group.expected())
    assert found.log_file == str(group.root / "work" / "pieces" / "0-0-0-attempt-0.log")
    assert Path(found.facts_file).exists()


def test_two_attempts_write_different_files(group: Group) -> None:
    first, second = group.rewritten(), group.rewritten()
    assert first.log_file != second.log_file
    assert len(group.files()) == 6


def with_indexes(group: Group) -> Path:
    """Beside the first segment, as a broker has them; the path without its ending."""
    offset_index, time_index = indexes(map(encode, group.segments[0]), 0, INTERVAL_BYTES)
    stem = Path(group.sources[0].path).with_suffix("")
    stem.with_suffix(INDEX).write_bytes(offset_index)
    stem.with_suffix(TIME_INDEX).write_bytes(time_index)
    return stem


def test_a_segment_that_loses_nothing_is_left_in_place(tmp_path: Path) -> None:
    group = Group(tmp_path, (NOTHING_GOES,))
    with_indexes(group)
    found = group.rewritten()
    assert found.left_in_place
    assert (found.records_kept, found.batches_kept, found.batches_rebuilt) == (4, 2, 0)
    assert group.files() == []


@pytest.mark.parametrize("kind", [INDEX, TIME_INDEX])
def test_one_whose_indexes_would_be_others_is_not(tmp_path: Path, kind: str) -> None:
    group = Group(tmp_path, (NOTHING_GOES,))
    with_indexes(group).with_suffix(kind).write_bytes(b"another")
    found = group.rewritten()
    assert not found.left_in_place
    assert Path(found.log_file).read_bytes() == b"".join(map(encode, NOTHING_GOES))


def test_one_of_several_segments_is_not(tmp_path: Path) -> None:
    group = Group(tmp_path, ([NOTHING_GOES[0]], [NOTHING_GOES[1]]))
    with_indexes(group)
    assert not group.rewritten().left_in_place


def test_one_with_a_marker_that_changes_is_not(tmp_path: Path) -> None:
    group = Group(tmp_path, (NOTHING_GOES,))
    with_indexes(group)
    group.piece = group.piece._replace(changes_markers=True)
    assert not group.rewritten().left_in_place


def test_a_segment_that_has_changed_since_the_scan_leaves_nothing(group: Group) -> None:
    path = Path(group.sources[1].path)
    path.write_bytes(path.read_bytes())
    with pytest.raises(LogChangedError):
        group.rewritten()
    assert group.files() == []


def test_batches_that_are_not_those_of_the_scan_leave_nothing(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a disk, and no writer, has changed them: with checksums that fit."""
    monkeypatch.setattr(source_identity, "_check_same", lambda *_: None)
    last = replace(SECOND[1], leader_epoch=SECOND[1].leader_epoch + 1)
    Path(group.sources[1].path).write_bytes(encode(SECOND[0]) + encode(last))
    with pytest.raises(MiswrittenError, match="are not those that were scanned"):
        group.rewritten()
    assert group.files() == []


def test_a_dry_run_refuses_batches_that_would_stand_out_of_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last offset delta that a disk has changed: what is only copied has no other proof here."""
    monkeypatch.setattr(source_identity, "_check_same", lambda *_: None)
    group = Group(tmp_path, ([NOTHING_GOES[0]], [NOTHING_GOES[1]]), dry_run=True)
    path = Path(group.sources[0].path)
    changed = bytearray(path.read_bytes())
    assert changed[23:27] == b"\0\0\0\1"
    changed[26] = 2  # one more: the next batch begins there
    path.write_bytes(changed)
    told = rf"byte 0: byte {len(changed)} of what would be written: base offset 2 is not above"
    with pytest.raises(MiswrittenError, match=told):
        group.rewritten()
