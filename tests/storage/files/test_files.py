"""What `Files` promise, held against each implementation: on the disk and in memory."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from storage.errors import CorruptFileError
from storage.files.file_pool import FilePool
from storage.files.files import Entry, Files
from storage.files.local import LocalFiles
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import WatchedFiles


class Place(NamedTuple):
    """Files, and an empty directory to try them in."""

    files: Files
    root: str

    def at(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    def names(self, *names: str) -> set[str]:
        return {entry.name for entry in self.files.list_directory(self.at(*names))}

    def found(self, name: str) -> Entry:
        entry = self.files.look_up(self.at(name))
        assert entry is not None
        return entry


def in_memory() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory("/logs")
    return files


@pytest.fixture(
    params=["local", "memory", "watched local", "watched memory", "pooled local", "pooled memory"]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    kind: str = request.param
    found = Place(in_memory(), "/logs")
    if kind.endswith("local"):
        found = Place(LocalFiles(), str(tmp_path))
    if "pooled" in kind:
        return found._replace(files=FilePool(found.files, 1))
    return found._replace(files=WatchedFiles(found.files)) if "watched" in kind else found


def test_a_file_holds_what_it_was_made_to_hold(place: Place) -> None:
    files, path = place.files, place.at("file")
    for data in (b"new", b"", b"longer than before"):
        files.replace_file(path, data)
        assert files.read_bytes(path) == data
        assert place.found("file").size_bytes == len(data)
    assert place.names() == {"file"}


def test_a_temporary_file_that_was_left_is_written_over(place: Place) -> None:
    place.files.replace_file(place.at("file.tmp"), b"left")
    place.files.replace_file(place.at("file"), b"new")
    assert place.names() == {"file"}


def test_a_range_is_read_as_far_as_the_file_goes(place: Place) -> None:
    files, path = place.files, place.at("file")
    files.replace_file(path, bytes(range(10)))
    ranges = [(3, 4, [3, 4, 5, 6]), (8, 4, [8, 9]), (10, 4, []), (99, 1, []), (0, 0, [])]
    for position, length, expected in [*ranges, (-1, 0, []), (2, -1, [])]:
        assert files.read_range(path, position, length) == bytes(expected)
        with files.open(path) as source:
            assert source.read(position, length) == bytes(expected)
    with pytest.raises(OSError, match="Invalid argument") as error:
        files.read_range(path, -1, 1)
    assert error.value.filename == path


def test_an_open_file_is_the_one_that_was_opened(place: Place) -> None:
    files, path = place.files, place.at("file")
    files.replace_file(path, b"old")
    with files.open(path) as source:
        assert source.entry == place.found("file")._replace(name="")
        files.replace_file(path, b"another one")
        assert source.read(0, 99) == b"old"
        files.remove(path)
        assert (source.read(1, 2), source.entry.size_bytes) == (b"ld", 3)


def test_a_listing_tells_what_a_look_does(place: Place) -> None:
    files = place.files
    files.make_directory(place.at("directory"))
    for name in ("b", "c", "a"):
        files.replace_file(place.at(name), name.encode() * 5)
    listed = {entry.name: entry for entry in files.list_directory(place.root)}
    assert listed == {name: files.look_up(place.at(name)) for name in listed}
    assert [each.size_bytes for each in listed.values() if each.special] == []
    assert {entry.name for entry in listed.values() if entry.is_dir} == {"directory"}
    facts = [listed["directory"].size_bytes, listed["directory"].mtime_ns]
    assert facts == [0, 0]
    assert listed["a"].size_bytes == 5
    assert len({entry.inode for entry in listed.values()}) == 4
    directories, others = files.list_names(place.root)
    assert (directories, sorted(others)) == (["directory"], ["a", "b", "c"])
    assert files.list_directory(place.at("directory")) == []


def test_what_there_is_and_what_not(place: Place) -> None:
    files = place.files
    files.make_directory(place.at("directory"))
    files.replace_file(place.at("file"), b"")
    asked = [place.at(name) for name in ("directory", "file", "none", "none/x")]
    assert [files.exists(path) for path in asked] == [True, True, False, False]
    assert [files.is_directory(path) for path in asked] == [True, False, False, False]
    assert not files.is_directory(place.at("file/x"))
    with pytest.raises(NotADirectoryError):  # nobody can say what is behind it
        files.exists(place.at("file/x"))


def test_a_rename_takes_the_place_of_its_target(place: Place) -> None:
    files = place.files
    files.replace_file(place.at("a"), b"a")
    files.replace_file(place.at("b"), b"b")
    inode = place.found("a").inode
    files.rename(place.at("a"), place.at("b"))
    assert (place.names(), files.read_bytes(place.at("b"))) == ({"b"}, b"a")
    assert place.found("b").inode == inode
    files.make_directory(place.at("directory"))
    files.rename(place.at("b"), place.at("directory", "c"))
    assert (place.names(), place.names("directory")) == ({"directory"}, {"c"})


def test_a_directory_is_renamed_with_what_is_in_it(place: Place) -> None:
    files = place.files
    for name in ("full", "empty"):
        files.make_directory(place.at(name))
    files.replace_file(place.at("full", "file"), b"x")
    files.rename(place.at("full"), place.at("empty"))
    assert (place.names(), place.names("empty")) == ({"empty"}, {"file"})


def test_an_empty_directory_is_removed(place: Place) -> None:
    files = place.files
    files.make_directory(place.at("empty"))
    files.remove_directory(place.at("empty"))
    assert place.names() == set()


def test_a_second_name_is_of_the_same_file(place: Place) -> None:
    files, both = place.files, (place.at("a"), place.at("b"))
    files.replace_file(both[0], b"a file")
    files.link(*both)
    assert place.found("a").inode == place.found("b").inode
    files.rename(*both)  # both are its names: POSIX leaves them
    assert place.names() == {"a", "b"}
    files.replace_file(both[0], b"another")  # which takes the name, and leaves the file
    assert files.read_bytes(both[1]) == b"a file"
    files.remove(both[0])
    assert (place.names(), files.read_bytes(both[1])) == ({"b"}, b"a file")


def test_a_file_is_cut_off(place: Place) -> None:
    files, path = place.files, place.at("file")
    files.replace_file(path, b"12345")
    inode = place.found("file").inode
    for size, data in ((3, b"123"), (5, b"123\0\0"), (0, b"")):
        files.truncate_file(path, size)
        assert files.read_bytes(path) == data
    assert place.found("file").inode == inode


def test_syncs_change_nothing(place: Place) -> None:
    files = place.files
    files.replace_file(place.at("file"), b"x")
    files.sync_file(place.at("file"))
    files.sync_directory(place.root)
    assert files.read_bytes(place.at("file")) == b"x"


Call = Callable[[Files, Callable[[str], str]], object]
# with the files `f` and `g`, the empty directory `d`, and `full` with a file `x`
FAILING: dict[str, tuple[Call, int, list[str]]] = {
    "list none": (lambda f, at: f.list_directory(at("no")), errno.ENOENT, ["no"]),
    "list file": (lambda f, at: f.list_directory(at("f")), errno.ENOTDIR, ["f"]),
    "names none": (lambda f, at: f.list_names(at("no")), errno.ENOENT, ["no"]),
    "names file": (lambda f, at: f.list_names(at("f")), errno.ENOTDIR, ["f"]),
    "look below file": (lambda f, at: f.look_up(at("f/x")), errno.ENOTDIR, ["f/x"]),
    "read none": (lambda f, at: f.read_bytes(at("no")), errno.ENOENT, ["no"]),
    "read below none": (lambda f, at: f.read_bytes(at("no/x")), errno.ENOENT, ["no/x"]),
    "read below file": (lambda f, at: f.read_bytes(at("f/x")), errno.ENOTDIR, ["f/x"]),
    "range none": (lambda f, at: f.read_range(at("no"), 0, 1), errno.ENOENT, ["no"]),
    "open none": (lambda f, at: f.open(at("no")), errno.ENOENT, ["no"]),
    "replace in none": (
        lambda f, at: f.replace_file(at("no/x"), b""), errno.ENOENT, ["no/x.tmp"]),
    "replace below file": (
        lambda f, at: f.replace_file(at("f/x"), b""), errno.ENOTDIR, ["f/x.tmp"]),
    "replace directory": (
        lambda f, at: f.replace_file(at("d"), b""), errno.EISDIR, ["d.tmp", "d"]),
    "truncate none": (lambda f, at: f.truncate_file(at("no"), 0), errno.ENOENT, ["no"]),
    "truncate directory": (lambda f, at: f.truncate_file(at("d"), 0), errno.EISDIR, ["d"]),
    "truncate below 0": (lambda f, at: f.truncate_file(at("f"), -1), errno.EINVAL, ["f"]),
    "rename none": (lambda f, at: f.rename(at("no"), at("f")), errno.ENOENT, ["no", "f"]),
    "rename to nowhere": (
        lambda f, at: f.rename(at("f"), at("no/x")), errno.ENOENT, ["f", "no/x"]),
    "rename below file": (
        lambda f, at: f.rename(at("f"), at("g/x")), errno.ENOTDIR, ["f", "g/x"]),
    "file over directory": (lambda f, at: f.rename(at("f"), at("d")), errno.EISDIR, ["f", "d"]),
    "directory over file": (lambda f, at: f.rename(at("d"), at("f")), errno.ENOTDIR, ["d", "f"]),
    "directory over full one": (
        lambda f, at: f.rename(at("d"), at("full")), errno.ENOTEMPTY, ["d", "full"]),
    "directory into itself": (
        lambda f, at: f.rename(at("d"), at("d/x")), errno.EINVAL, ["d", "d/x"]),
    "link none": (lambda f, at: f.link(at("no"), at("x")), errno.ENOENT, ["no", "x"]),
    "link over file": (lambda f, at: f.link(at("f"), at("g")), errno.EEXIST, ["f", "g"]),
    "link over itself": (lambda f, at: f.link(at("f"), at("f")), errno.EEXIST, ["f", "f"]),
    "link directory": (lambda f, at: f.link(at("d"), at("x")), errno.EPERM, ["d", "x"]),
    "link to nowhere": (lambda f, at: f.link(at("f"), at("no/x")), errno.ENOENT, ["f", "no/x"]),
    "remove none": (lambda f, at: f.remove(at("no")), errno.ENOENT, ["no"]),
    "remove directory": (lambda f, at: f.remove(at("d")), errno.EISDIR, ["d"]),
    "remove below file": (lambda f, at: f.remove(at("f/x")), errno.ENOTDIR, ["f/x"]),
    "remove no directory": (
        lambda f, at: f.remove_directory(at("no")), errno.ENOENT, ["no"]),
    "remove file as directory": (
        lambda f, at: f.remove_directory(at("f")), errno.ENOTDIR, ["f"]),
    "remove full directory": (
        lambda f, at: f.remove_directory(at("full")), errno.ENOTEMPTY, ["full"]),
    "make again": (lambda f, at: f.make_directory(at("d")), errno.EEXIST, ["d"]),
    "make over file": (lambda f, at: f.make_directory(at("f")), errno.EEXIST, ["f"]),
    "make in none": (lambda f, at: f.make_directory(at("no/x")), errno.ENOENT, ["no/x"]),
    "make below file": (lambda f, at: f.make_directory(at("f/x")), errno.ENOTDIR, ["f/x"]),
    "sync none": (lambda f, at: f.sync_file(at("no")), errno.ENOENT, ["no"]),
    "sync no directory": (lambda f, at: f.sync_directory(at("no")), errno.ENOENT, ["no"]),
    "sync file as directory": (lambda f, at: f.sync_directory(at("f")), errno.ENOTDIR, ["f"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FAILING))
def test_an_error_names_its_paths_and_nothing_was_changed(place: Place, name: str) -> None:
    call, code, named = FAILING[name]
    files = place.files
    for directory in ("d", "full"):
        files.make_directory(place.at(directory))
    for file in ("f", "g", "full/x"):
        files.replace_file(place.at(file), file.encode())
    with pytest.raises(OSError) as error:
        call(files, place.at)
    assert error.value.errno == code
    paths = [error.value.filename, error.value.filename2]
    assert [path for path in paths if path is not None] == [place.at(each) for each in named]
    assert (place.names(), place.names("full")) == ({"d", "f", "full", "g"}, {"x"})
    assert [files.read_bytes(place.at(each)) for each in ("f", "g", "full/x")] == [
        b"f", b"g", b"full/x",
    ]  # fmt: skip


def test_a_directory_is_no_file(place: Place) -> None:
    path = place.at("directory")
    place.files.make_directory(path)
    for call in (place.files.read_bytes, place.files.open):
        with pytest.raises(CorruptFileError, match="is a directory, not a file") as error:
            call(path)
        assert error.value.path == path


def test_an_open_file_is_written_cut_off_and_made_longer(place: Place) -> None:
    files, path = place.files, place.at("file")
    with pytest.raises(FileNotFoundError):
        files.open_to_change(path)
    file = files.open_to_change(path, create=True)
    file.write(0, b"abcdef")
    file.write(2, memoryview(b"XY"))
    file.write(8, bytearray(b"z"))
    assert files.read_bytes(path) == b"abXYef\0\0z"
    file.truncate(3)
    file.truncate(5)
    assert (file.read(1, 9), file.size()) == (b"bX\0\0", 5)
    files.rename(path, place.at("other"))
    file.write(5, b"!")  # it is the file, not the name
    file.sync()
    file.close()
    assert files.read_bytes(place.at("other")) == b"abX\0\0!"
    again = files.open_to_change(place.at("other"), create=True)
    assert again.size() == 6
    again.close()


def test_what_was_written_and_not_synced_is_lost_with_the_power() -> None:
    files = MemoryFiles()
    file = files.open_to_change("/file", create=True)
    file.write(0, b"first")
    file.sync()
    files.sync_directory("/")
    file.write(5, b" second")
    assert files.after_power_cut().read_bytes("/file") == b"first"


def test_a_time_is_set_to_the_millisecond(place: Place) -> None:
    place.files.replace_file(place.at("file"), b"")
    place.files.set_modified(place.at("file"), 1_700_000_000_123)
    assert place.found("file").mtime_ns == 1_700_000_000_123_000_000
