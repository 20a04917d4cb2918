"""Power cuts in memory: what `Files` promise to be on disk is there, and nothing else."""

from collections.abc import Callable

import pytest

from tests.support.files.memory import MemoryFiles


def made(names: dict[str, bytes]) -> MemoryFiles:
    """Files of a directory `/logs`, all of them on disk."""
    files = MemoryFiles()
    files.make_directory("/logs")
    for name, data in names.items():
        files.replace_file(f"/logs/{name}", data)
    return files


def contents(files: MemoryFiles, directory: str = "/logs") -> dict[str, bytes]:
    paths = {each.name: f"{directory}/{each.name}" for each in files.list_directory(directory)}
    return {name: files.read_bytes(path) for name, path in paths.items()}


LASTING: dict[str, tuple[Callable[[MemoryFiles], object], dict[str, bytes]]] = {
    "a new file": (lambda f: f.replace_file("/logs/c", b"3"), {"a": b"1", "b": b"2", "c": b"3"}),
    "another": (lambda f: f.replace_file("/logs/a", b"3"), {"a": b"3", "b": b"2"}),
    "cut off": (lambda f: f.truncate_file("/logs/a", 0), {"a": b"", "b": b"2"}),
}
# what they do, and what it is once the directory was synced
UNTIL_A_SYNC: dict[str, tuple[Callable[[MemoryFiles], object], dict[str, bytes]]] = {
    "renamed": (lambda f: f.rename("/logs/a", "/logs/b"), {"b": b"1"}),
    "linked": (lambda f: f.link("/logs/a", "/logs/c"), {"a": b"1", "b": b"2", "c": b"1"}),
    "removed": (lambda f: f.remove("/logs/a"), {"b": b"2"}),
}


@pytest.mark.parametrize("name", list(LASTING))
def test_some_changes_are_on_disk_at_once(name: str) -> None:
    change, expected = LASTING[name]
    files = made({"a": b"1", "b": b"2"})
    change(files)
    assert contents(files.after_power_cut()) == contents(files) == expected


@pytest.mark.parametrize("name", list(UNTIL_A_SYNC))
def test_others_once_their_directory_was_synced(name: str) -> None:
    change, expected = UNTIL_A_SYNC[name]
    files = made({"a": b"1", "b": b"2"})
    change(files)
    assert contents(files) == expected
    assert contents(files.after_power_cut()) == {"a": b"1", "b": b"2"}
    files.sync_directory("/logs")
    assert contents(files.after_power_cut()) == expected


def test_a_file_between_two_directories_may_be_lost_or_be_in_both() -> None:
    files = made({"a": b"1"})
    files.make_directory("/kept")
    files.rename("/logs/a", "/kept/a")
    files.sync_directory("/logs")
    assert (contents(files.after_power_cut()), contents(files.after_power_cut(), "/kept")) == (
        {}, {},
    )  # fmt: skip
    files = made({"a": b"1"})
    files.make_directory("/kept")
    files.rename("/logs/a", "/kept/a")
    files.sync_directory("/kept")
    left = files.after_power_cut()
    assert contents(left) == contents(left, "/kept") == {"a": b"1"}
    assert left.look_up("/logs/a") == left.look_up("/kept/a")


def test_a_new_directory_is_there_and_empty() -> None:
    files = made({})
    files.make_directory("/logs/d")
    left = files.after_power_cut()
    assert left.list_names("/logs") == (["d"], [])
    assert left.list_directory("/logs/d") == []


def test_what_is_left_is_another_disk() -> None:
    files = made({"a": b"1"})
    left = files.after_power_cut()
    left.truncate_file("/logs/a", 0)
    left.replace_file("/logs/b", b"2")
    assert contents(files) == {"a": b"1"}
    inodes = [entry.inode for entry in left.list_directory("/logs")]
    assert len(set(inodes)) == 2


def test_a_listing_comes_in_the_reverse_order_of_names() -> None:
    files = made({"b": b"", "c": b"", "a": b""})
    assert [entry.name for entry in files.list_directory("/logs")] == ["c", "b", "a"]


def test_times_count_up_with_changes() -> None:
    files = made({"a": b"", "b": b""})
    first, second = files.look_up("/logs/a"), files.look_up("/logs/b")
    assert first is not None and second is not None
    assert 0 < first.mtime_ns < second.mtime_ns
    files.link("/logs/a", "/logs/c")
    third = files.look_up("/logs/a")
    assert third is not None
    assert (third.mtime_ns, third.ctime_ns > first.ctime_ns) == (first.mtime_ns, True)
