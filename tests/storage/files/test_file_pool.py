"""A pool of open files: how many are open, which is closed, and what outlives that."""

import errno
import threading
from pathlib import Path

import pytest

from storage.files.file_pool import FilePool, default_open_limit, pooled
from storage.files.files import ChangingFile
from storage.files.local import LOCAL
from tests.support.file_states import open_below
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import Operation, WatchedFiles


def made(pool: FilePool, directory: Path, count: int) -> list[ChangingFile]:
    files: list[ChangingFile] = []
    for number in range(count):
        file = pool.open_to_change(str(directory / f"{number}"), create=True)
        file.write(0, bytes([number]) * 10)
        files.append(file)
    return files


def test_no_more_are_open_than_may_be(tmp_path: Path) -> None:
    pool = FilePool(LOCAL, 5)
    files = made(pool, tmp_path, 50)
    for turn in range(3):
        for number, file in enumerate(files):
            assert file.read(0, 100) == bytes([number]) * 10 + bytes(range(turn))
            file.write(10 + turn, bytes([turn]))
            assert pool.open_count == len(open_below(tmp_path)) <= 5
    for file in files:
        file.close()
        file.close()
    assert pool.open_count == len(open_below(tmp_path)) == 0


def test_what_is_used_again_and_again_stays_open(tmp_path: Path) -> None:
    watched = WatchedFiles(LOCAL)
    pool = FilePool(watched, 5)
    files = made(pool, tmp_path, 40)
    for file in files:
        file.sync()
    opening = Operation("open_to_change", (str(tmp_path / "0"),))
    before = watched.operations.count(opening)
    for file in files[1:]:
        files[0].read(0, 1)
        file.read(0, 1)
    assert watched.operations.count(opening) - before <= 3  # and ten times if it went by age alone


def test_one_that_was_synced_is_closed_before_one_that_was_not(tmp_path: Path) -> None:
    watched = WatchedFiles(LOCAL)
    pool = FilePool(watched, 3)
    for number, file in enumerate(made(pool, tmp_path, 3)):
        if number == 1:
            file.sync()
    pool.open_to_change(str(tmp_path / "more"), create=True)
    assert watched.counts["sync"] == 1
    pool.open_to_change(str(tmp_path / "yet another"), create=True)
    assert watched.counts["sync"] == 1  # "more" has nothing to be synced


def test_what_was_written_is_synced_before_its_file_is_closed(tmp_path: Path) -> None:
    watched = WatchedFiles(LOCAL)
    pool = FilePool(watched, 1)
    first, *_ = made(pool, tmp_path, 2)
    sync = Operation("sync", (str(tmp_path / "0"),))
    assert watched.operations.count(sync) == 1
    first.truncate(3)  # of which no disk tells an error
    pool.open_to_change(str(tmp_path / "1"))
    assert watched.operations.count(sync) == 1
    first.write(3, b"more")
    pool.open_to_change(str(tmp_path / "1"))
    assert watched.operations.count(sync) == 2


def test_an_error_of_that_sync_is_told_to_whom_it_concerns(tmp_path: Path) -> None:
    def fail(operation: Operation) -> None:
        if operation == Operation("sync", (str(tmp_path / "0"),)) and fails:
            raise OSError(errno.EIO, "broken", operation.paths[0])

    fails = True
    pool = FilePool(WatchedFiles(LOCAL, fail), 1)
    first, second = made(pool, tmp_path, 2)  # no error: it is not of the second file
    second.sync()
    assert first.read(0, 1) == b"\0"
    fails = False
    with pytest.raises(OSError, match="broken"):
        first.sync()
    first.sync()


def test_names_are_followed(tmp_path: Path) -> None:
    pool = FilePool(LOCAL, 1)
    (tmp_path / "t-0").mkdir()
    first, second, third = made(pool, tmp_path / "t-0", 3)
    pool.rename(str(tmp_path / "t-0" / "0"), str(tmp_path / "t-0" / "0.deleted"))
    pool.rename(str(tmp_path / "t-0"), str(tmp_path / "t-0.abc-delete"))
    (tmp_path / "t-0").mkdir()
    for name in "012":
        (tmp_path / "t-0" / name).write_bytes(b"another log of that name")
    assert [file.read(0, 1) for file in (first, second, third)] == [b"\0", b"\1", b"\2"]


def test_a_file_without_a_name_stays_open(tmp_path: Path) -> None:
    pool = FilePool(LOCAL, 2)
    removed, below, replaced, last = made(pool, tmp_path, 4)
    pool.remove(str(tmp_path / "0"))
    pool.rename(str(tmp_path / "3"), str(tmp_path / "1"))
    pool.replace_file(str(tmp_path / "2"), b"new")
    (tmp_path / "others").mkdir()
    others = made(pool, tmp_path / "others", 3)
    read = [file.read(0, 1) for file in (removed, below, replaced, last)]
    assert read == [b"\0", b"\1", b"\2", b"\3"]
    for file in (removed, below, replaced, last, *others):
        file.close()
    assert pool.open_count == len(open_below(tmp_path)) == 0


def test_a_file_that_was_closed_is_not_opened_again(tmp_path: Path) -> None:
    file, *_ = made(FilePool(LOCAL, 1), tmp_path, 1)
    file.close()
    with pytest.raises(OSError, match="closed") as error:
        file.read(0, 1)
    assert (error.value.errno, error.value.filename) == (errno.EBADF, str(tmp_path / "0"))


def test_what_a_name_leads_to_is_told_when_it_is_opened() -> None:
    pool = FilePool(MemoryFiles(), 1)
    with pytest.raises(FileNotFoundError):
        pool.open_to_change("/missing")
    assert pool.open_count == 0


def test_all_files_below_a_directory_are_closed_for_good(tmp_path: Path) -> None:
    """Those that are open, those that the pool has closed meanwhile, and those without a name."""
    for name in ("t-0", "t-0/sub", "t-01"):
        (tmp_path / name).mkdir()
    pool = FilePool(LOCAL, 3)
    below = [*made(pool, tmp_path / "t-0", 4), *made(pool, tmp_path / "t-0/sub", 2)]
    pool.remove(str(tmp_path / "t-0/0"))
    beside = made(pool, tmp_path / "t-01", 1)
    pool.forget_below(str(tmp_path / "t-0"))
    assert open_below(tmp_path / "t-0") == []
    for file in below:
        with pytest.raises(OSError, match="closed"):
            file.read(0, 1)
        file.close()
    assert beside[0].read(0, 1) == b"\0"
    beside[0].close()


def test_a_reader_is_never_left_without_its_file(tmp_path: Path) -> None:
    """Each thread reads and writes files of which the others' use closes all but two."""
    pool = FilePool(LOCAL, 2)
    files = made(pool, tmp_path, 12)
    errors: list[BaseException] = []
    most = 0

    def work(own: int) -> None:
        nonlocal most
        try:
            for turn in range(2_000):
                number = (turn * 7 + own * 3) % 12
                assert files[number].read(0, 10) == bytes([number]) * 10
                if turn % 20 == 0:
                    files[own].write(10, turn.to_bytes(4))
                    assert files[own].read(10, 4) == turn.to_bytes(4)
                    most = max(most, len(open_below(tmp_path)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert most <= 2 + 4  # and one more for each call that is under way
    for file in files:
        file.close()
    assert len(open_below(tmp_path)) == 0


def test_how_many_is_asked_for_once() -> None:
    pool = pooled(MemoryFiles(), 7)
    assert pool.most == 7
    assert pooled(pool, 3) is pool
    assert 1 <= default_open_limit() <= 500
    with pytest.raises(ValueError, match="one is needed"):
        FilePool(MemoryFiles(), 0)


def test_a_directory_that_is_known_is_listed_once(tmp_path: Path) -> None:
    watched = WatchedFiles(LOCAL)
    pool = FilePool(watched, 2)
    (tmp_path / "below").mkdir()
    made(pool, tmp_path, 2)
    with pool.knowing(str(tmp_path)):
        looked = len(watched.operations)
        assert sorted(pool.list_names(str(tmp_path))[1]) == ["0", "1"]
        there = {name: pool.exists(str(tmp_path / name)) for name in ("0", "2", "below")}
        assert there == {"0": True, "2": False, "below": True}
        assert len(watched.operations) == looked
        pool.remove(str(tmp_path / "0"))
        pool.rename(str(tmp_path / "1"), str(tmp_path / "1.deleted"))
        pool.open_to_change(str(tmp_path / "new"), create=True).close()
        pool.replace_file(str(tmp_path / "written"), b"")
        pool.link(str(tmp_path / "written"), str(tmp_path / "linked"))
        known = pool.list_names(str(tmp_path))
    assert [sorted(names) for names in known] == [
        ["below"],
        ["1.deleted", "linked", "new", "written"],
    ]
    assert [sorted(names) for names in pool.list_names(str(tmp_path))] == [
        sorted(names) for names in known
    ]
    (tmp_path / "0").touch()
    assert pool.exists(str(tmp_path / "0"))
    assert not pool.exists(str(tmp_path / "1"))


def test_a_known_file_is_opened_when_it_is_used_once_the_pool_is_full(tmp_path: Path) -> None:
    watched = WatchedFiles(LOCAL)
    pool = FilePool(watched, 1)
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(bytes(number))
    (tmp_path / "3").symlink_to("2")
    with pool.knowing(str(tmp_path)):
        files = [pool.open_to_change(str(tmp_path / f"{number}")) for number in range(4)]
        assert [file.size() for file in files[:3]] == [0, 1, 2]
        assert watched.counts["open_to_change"] == 1
        with pytest.raises(OSError, match="symbolic links") as error:
            files[3].size()
        assert error.value.filename == str(tmp_path / "3")
        with pytest.raises(FileNotFoundError):
            pool.open_to_change(str(tmp_path / "4"))
    assert files[2].read(0, 9) == bytes(2)
    assert pool.open_count == 1
