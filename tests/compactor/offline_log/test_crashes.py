"""Killed, or without power, before every file operation of a change or a move of one log.

The log is whole afterwards, up to what the change takes away or adds, and the same command finishes
it. Everything is in memory; a power cut leaves what was synced and nothing else.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from compactor.offline_log import append, log_move, truncate
from compactor.offline_log.log_location import LogLocation, known_offsets
from compactor.offline_log.open_log import LogSettings, change_log, view_log
from compactor.offline_log.record_filter import NewRecord
from compactor.offline_log.truncate import Change, apply_change
from storage.codecs.compression import Codec
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.log.batches import in_memory as batches_in
from storage.log.log_config import LogConfig
from tests.compactor.offline_log.made_logs import CLOCK_MS, make
from tests.support.files.cuts import cuts
from tests.support.files.memory import in_memory

SETTINGS = LogSettings(
    LogConfig(index_interval_bytes=0, segment_index_bytes=4096), CLOCK_MS, 86_400_000
)
CHANGES: dict[str, Callable[[], Change]] = {
    "roll": truncate.roll,
    "delete-records 5": lambda: truncate.delete_records(5),
    "delete-records": lambda: truncate.delete_records(None),
    "truncate 9": lambda: truncate.truncate(9),
    "truncate 4": lambda: truncate.truncate(4),
    "truncate 1": lambda: truncate.truncate(1),
    "append": lambda: append.append([NewRecord(b"k", b"v")] * 3, Codec.NONE),
    "abort": lambda: append.abort(8),
}
# what of the records there before has to be there whatever happens: from, up to
KEPT = {"delete-records 5": (5, 10), "delete-records": (10, 10), "truncate 9": (0, 9),
        "truncate 4": (0, 4), "truncate 1": (0, 1)}  # fmt: skip

Seen = list[tuple[int, bytes | None, bytes | None]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "log")


def place(root: Path) -> LogLocation:
    return LogLocation(str(root), "orders", 0)


def seen(at: LogLocation, files: Files) -> Seen:
    """Every record that whoever opens the log finds, markers too."""
    found: Seen = []
    with view_log(at, known_offsets(at, files), SETTINGS, files) as view:
        for segment in view.log.segments:
            for batch in batches_in(segment.log.read(0, segment.size_bytes)):
                assert batch.is_valid()
                found += [(r.offset, r.key, r.value) for r in batch.records()]
        start = view.log.log_start_offset
    return [record for record in found if record[0] >= start]


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_that_is_cut_short_loses_nothing_and_can_be_finished(
    name: str, root: Path
) -> None:
    at = place(root)
    first = in_memory(root)
    before = seen(at, first)
    act = partial(apply_change, CHANGES[name]())
    change_log(at, known_offsets(at, first), SETTINGS, act, first)
    after = seen(at, first)
    low, high = KEPT.get(name, (0, 10))
    needed = [record for record in before if low <= record[0] < high]
    possible = {*before, *after}
    kinds = set()

    def change(files: Files) -> None:
        change_log(at, known_offsets(at, files), SETTINGS, act, files)

    for files, kind in cuts(in_memory(root), change):
        is_clean = clean_shutdown.exists(at.log_dir, files)
        found = seen(at, files)
        assert [r for r in found if r in needed] == needed, kind
        assert {*found} <= possible, kind
        if is_clean:
            assert found in (before, after), kind
        if not is_clean or found == before != after:
            try:
                change(files)
            except Exception as error:  # it was done already
                assert name == "abort", (kind, error)
            again = seen(at, files)
            wanted = after if name != "append" else [*found, *after[-3:]]
            assert [r[1:] for r in again] == [r[1:] for r in wanted], kind
        kinds.add((is_clean, found == before))
    assert kinds >= {(True, True), (False, True)}


class TestMove:
    @pytest.fixture
    def dirs(self, root: Path) -> tuple[LogLocation, LogLocation]:
        other = root.parent / "other"
        other.mkdir()
        clean_shutdown.write(str(other))
        checkpoint.write(str(root / checkpoint.CLEANER_OFFSET), {("orders", 0): 4})
        return place(root), LogLocation(str(other), "orders", 0)

    def move(self, dirs: tuple[LogLocation, LogLocation], files: Files) -> None:
        source, target = dirs
        planned = log_move.plan_move(source, target.log_dir, files)
        log_move.move_log(planned, files, lambda _, __: None)

    def bytes_of(self, at: LogLocation, files: Files) -> dict[str, bytes] | None:
        if not files.exists(at.path):
            return None
        names = [entry.name for entry in files.list_directory(at.path)]
        return {name: files.read_bytes(f"{at.path}/{name}") for name in names}

    def test_one_whole_copy_is_there_at_every_moment(
        self, dirs: tuple[LogLocation, LogLocation]
    ) -> None:
        source, target = dirs
        root = Path(source.log_dir).parent
        whole = self.bytes_of(source, in_memory(root))
        assert whole
        states = set()
        for files, kind in cuts(in_memory(root), partial(self.move, dirs)):
            there = self.bytes_of(source, files), self.bytes_of(target, files)
            assert all(copy is None or copy == whole for copy in there), kind
            assert whole in there, kind
            states.add(tuple(copy is not None for copy in there))
            self.cleaner_is_named_once(dirs, files, kind)
            leaving = f"{source.path}.{log_move.MOVE_ID}-delete"
            files_of_it = [checkpoint.RECOVERY_POINT, checkpoint.REPLICATION]
            entries = [checkpoint.read(source.checkpoint(n), files) for n in files_of_it]
            if there[0] or files.exists(leaving) or any(entries):
                self.move(dirs, files)
            self.is_moved(dirs, files, whole, kind)
        assert states == {(True, False), (True, True), (False, True)}

    def cleaner_is_named_once(
        self, dirs: tuple[LogLocation, LogLocation], files: Files, kind: str
    ) -> None:
        """With two entries of a partition a broker's cleaner ends."""
        name = checkpoint.CLEANER_OFFSET
        found = [checkpoint.read(at.checkpoint(name), files).get(at.key) for at in dirs]
        assert found in ([4, None], [None, None], [None, 4]), kind

    def is_moved(
        self,
        dirs: tuple[LogLocation, LogLocation],
        files: Files,
        whole: dict[str, bytes],
        kind: str,
    ) -> None:
        source, target = dirs
        assert self.bytes_of(source, files) is None, kind
        assert self.bytes_of(target, files) == whole, kind
        assert files.list_names(source.log_dir)[0] == [], kind
        assert files.list_names(target.log_dir)[0] == ["orders-0"], kind
        for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
            assert checkpoint.read(source.checkpoint(name), files) == {}, kind
            assert checkpoint.read(target.checkpoint(name), files) == {target.key: 10}, kind
