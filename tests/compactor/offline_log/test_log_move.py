"""`compactor log move`: both directories afterwards, what is refused, what is finished."""

import json
import os
import shutil
from pathlib import Path

import pytest

from compactor.offline_log import log_move
from compactor.offline_log.log_location import LogLocation
from storage.file_names import is_special_dir
from storage.formats import checkpoint, clean_shutdown, meta_properties
from storage.formats.meta_properties import MetaProperties
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.compactor.offline_log.made_logs import files_in, make
from tests.support.local_command import Ended, run_command
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir

NAME = "orders-0"


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path, Path]:
    """Two of one broker; in the first a log that was cleaned up to offset 4."""
    source, target = make(tmp_path / "one"), tmp_path / "two"
    target.mkdir()
    clean_shutdown.write(str(target))
    for number, path in enumerate((source, target)):
        meta_properties.write(str(path), MetaProperties(1, "cluster", 1, f"dir-{number}"))
    checkpoint.write(str(source / checkpoint.CLEANER_OFFSET), {("orders", 0): 4})
    return source, target


def move(dirs: tuple[Path, Path], *words: object) -> Ended:
    return run_command("log", "move", dirs[0], NAME, dirs[1], *words)


def entries(path: Path) -> dict[str, int | None]:
    names = (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION, checkpoint.CLEANER_OFFSET)
    return {name: checkpoint.read(str(path / name)).get(("orders", 0)) for name in names}


def of_log(path: Path) -> list[object]:
    return [each for each in files_in(path) if str(each["name"]).startswith(NAME)]


def test_the_log_its_times_and_its_entries_go_along(dirs: tuple[Path, Path]) -> None:
    source, target = dirs
    log = source / NAME / "00000000000000000000.log"
    os.utime(log, ns=(1_600_000_000_123_000_000,) * 2)
    os.chmod(log, 0o640)
    os.chmod(source / NAME, 0o750)
    before, noted = of_log(source), entries(source)
    ended = move(dirs, "--yes")
    assert ended.code == 0, ended.error
    assert f"bytes in all, from {source} to {target}" in ended.out
    assert (of_log(target), of_log(source)) == (before, [])
    assert entries(target) == noted
    assert set(entries(source).values()) == {None}
    assert [p.name for p in source.iterdir() if p.is_dir()] == []
    moved = (target / NAME / log.name).stat()
    assert (moved.st_mtime_ns, moved.st_mode & 0o777) == (1_600_000_000_123_000_000, 0o640)
    assert (target / NAME).stat().st_mode & 0o777 == 0o750
    assert clean_shutdown.exists(str(source)) and clean_shutdown.exists(str(target))
    found = run_command("log", "offsets", target, NAME, "--format", "json").summary
    assert (found["log_end"], found["last_stable"]) == (10, 8)


@pytest.mark.parametrize("noted", [None, 4])
@pytest.mark.parametrize("is_copied", [False, True])
def test_an_entry_of_an_earlier_log_of_that_name_goes(
    dirs: tuple[Path, Path], noted: int | None, is_copied: bool
) -> None:
    """Else records would count as clean that no cleaner has seen."""
    source, target = dirs
    entry = {} if noted is None else {("orders", 0): noted}
    checkpoint.write(str(source / checkpoint.CLEANER_OFFSET), entry)
    checkpoint.write(str(target / checkpoint.CLEANER_OFFSET), {("orders", 0): 8, ("else", 1): 9})
    if is_copied:
        shutil.copytree(source / NAME, target / NAME)
    assert move(dirs, "--yes").code == 0
    assert checkpoint.read(str(target / checkpoint.CLEANER_OFFSET)) == {("else", 1): 9} | entry


def test_a_second_time_there_is_nothing_to_move(dirs: tuple[Path, Path]) -> None:
    assert move(dirs, "--yes").code == 0
    ended = move(dirs, "--yes")
    assert (ended.code, f"; it is in {dirs[1]}" in ended.error) == (2, True)


def test_a_move_that_was_cut_short_is_finished_and_that_is_said(dirs: tuple[Path, Path]) -> None:
    """All its states: `test_crashes`."""
    shutil.copytree(dirs[0] / NAME, dirs[1] / NAME)
    ended = move(dirs, "--yes", "--format", "json")
    assert ended.code == 0, ended.error
    assert "finishes" in json.loads(ended.out)["does"]


def test_what_is_asked_and_a_dry_run_change_nothing(dirs: tuple[Path, Path]) -> None:
    before = [files_in(path) for path in dirs]
    assert move(dirs, "--dry-run").code == 0
    ended = move(dirs)
    assert (ended.code, "move was not confirmed" in ended.error) == (3, True)
    assert [files_in(path) for path in dirs] == before


def make_fresh(source: Path, target: Path) -> None:
    """Make a log directory of the same broker that it has not used yet."""
    target.mkdir()
    for number, path in enumerate((source, target)):
        meta_properties.write(str(path), MetaProperties(1, "cluster", 1, f"dir-{number}"))


def test_a_second_log_may_follow_into_a_fresh_directory(tmp_path: Path) -> None:
    """The first move leaves the mark of a clean shutdown there, with the source's broker epoch."""
    source, target = tmp_path / "one", tmp_path / "two"
    for partition in (0, 1):
        log = BuiltLog("orders", partition, ((Batch((Message(b"k", b"v", 1000),)),),))
        build_log_dir(source, log)
    clean_shutdown.write(str(source), 17)
    make_fresh(source, target)
    for partition in (0, 1):
        ended = run_command("log", "move", source, f"orders-{partition}", target, "--yes")
        assert ended.code == 0, ended.error
    assert clean_shutdown.read(str(target)) == 17
    assert sorted(p.name for p in target.iterdir() if p.is_dir()) == ["orders-0", "orders-1"]


def test_an_unclean_directory_is_refused_without_an_option_that_is_not_there(
    dirs: tuple[Path, Path],
) -> None:
    (dirs[0] / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    ended = move(dirs, "--yes")
    assert (ended.code, "did not stop cleanly" in ended.error) == (3, True)
    assert "--recover-first" not in ended.error


@pytest.mark.parametrize("length", [213, 214, 248, 249])
def test_a_topic_with_a_long_name(length: int, tmp_path: Path) -> None:
    """Kafka takes 249 characters, and cuts a name with -delete to the 255 of a file system."""
    source, target, topic = tmp_path / "one", tmp_path / "two", "x" * length
    build_log_dir(source, BuiltLog(topic, 0, ((Batch((Message(b"k", b"v", 1000),)),),)))
    make_fresh(source, target)
    ended = run_command("log", "move", source, f"{topic}-0", target, "--yes")
    assert ended.code == 0, ended.error
    assert [p.name for p in target.iterdir() if p.is_dir()] == [f"{topic}-0"]
    assert [p.name for p in source.iterdir() if p.is_dir()] == []


def test_names_aside_are_a_brokers_to_delete_and_differ_by_topic() -> None:
    """Two topics that are cut to the same text do not share a directory."""
    names = [
        os.path.basename(log_move._aside(LogLocation("/d", topic, 7)))
        for topic in ("orders", "x" * 213, "x" * 248 + "a", "x" * 248 + "b")
    ]
    assert len(set(names)) == 4
    assert all(is_special_dir(name) and name.endswith("-delete") for name in names)
    assert max(map(len, names)) <= 255


class TestRefusals:
    def test_two_different_logs(self, dirs: tuple[Path, Path]) -> None:
        source, target = dirs
        shutil.copytree(source / NAME, target / NAME)
        path = target / NAME / "00000000000000000000.log"
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        before = [files_in(each) for each in dirs]
        ended = move(dirs, "--yes")
        assert (ended.code, [files_in(each) for each in dirs]) == (3, before)
        assert "there is a log of that name with other files" in ended.error

    @pytest.mark.parametrize("held", [0, 1])
    def test_beside_a_broker(self, dirs: tuple[Path, Path], held: int) -> None:
        with other_process(dirs[held] / ".lock") as said:
            assert said == "locked"
            ended = move(dirs, "--yes")
        assert (ended.code, f"{dirs[held]}/.lock: locked" in ended.error) == (3, True)

    def test_of_another_broker(self, dirs: tuple[Path, Path]) -> None:
        meta_properties.write(str(dirs[1]), MetaProperties(1, "cluster", 2, "dir-1"))
        ended = move(dirs, "--yes")
        assert (ended.code, "is of another broker than" in ended.error) == (2, True)

    def test_to_itself_and_to_nowhere(self, dirs: tuple[Path, Path], tmp_path: Path) -> None:
        assert f"TO_DIR {dirs[0]}: is LOG_DIR itself" in move((dirs[0], dirs[0]), "--yes").error
        assert move((dirs[0], tmp_path / "none"), "--yes").code == 2

    @pytest.mark.parametrize("which", [0, 1])
    def test_that_a_broker_is_moving(self, dirs: tuple[Path, Path], which: int) -> None:
        (dirs[which] / f"{NAME}.0123456789abcdef0123456789abcdef-future").mkdir()
        ended = move(dirs, "--yes")
        assert (ended.code, "a broker was moving" in ended.error) == (3, True)

    def test_after_an_unclean_shutdown(self, dirs: tuple[Path, Path]) -> None:
        """A target that no broker has used yet is none."""
        (dirs[1] / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        assert move(dirs, "--dry-run").code == 0
        (dirs[0] / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        ended = move(dirs, "--yes")
        assert (ended.code, "did not stop cleanly" in ended.error) == (3, True)

    def test_a_full_disk_leaves_all_where_it_was(
        self, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = [files_in(each) for each in dirs]
        pwrite = os.pwrite

        def full(descriptor: int, data: bytes, position: int) -> int:
            if "00000000000000000004.log" in os.readlink(f"/proc/self/fd/{descriptor}"):
                raise OSError(28, os.strerror(28))
            return pwrite(descriptor, data, position)

        monkeypatch.setattr(os, "pwrite", full)
        ended = move(dirs, "--yes")
        assert (ended.code, "No space left on device" in ended.error) == (1, True)
        monkeypatch.undo()
        assert [files_in(each) for each in dirs] == before
