"""A file under a second name: a link or a copy; its mark; what is not brought back."""

import errno
import os
from pathlib import Path

import pytest

from compactor.log_dirs.kept_files import FileMark, bring_back, keep, mark_of
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from tests.support.files.watched import Operation, WatchedFiles

# XXH3, 64 bits, of nothing and of "abc": published test vectors
EMPTY, ABC = "2d06800538d394c2", "78af5f94892f3950"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"abc")
    os.chmod(path, 0o640)
    os.utime(path, ns=(5_000_000_000, 5_000_000_000))
    return path


def without_links(code: int) -> WatchedFiles:
    def fail(operation: Operation) -> None:
        if operation.name == "link":
            raise OSError(code, os.strerror(code), *operation.paths)

    return WatchedFiles(LOCAL, fail)


def test_a_file_is_known_by_name_size_and_checksum(source: Path) -> None:
    assert mark_of(LOCAL, str(source)) == FileMark(source.name, 3, ABC)
    assert mark_of(LOCAL, str(source), "other.log") == FileMark("other.log", 3, ABC)
    assert mark_of(LOCAL, str(source), up_to=0) == FileMark(source.name, 0, EMPTY)
    assert mark_of(LOCAL, str(source), up_to=9) == FileMark(source.name, 3, ABC)


def test_a_link_is_made_where_it_can_be(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept.log"
    assert keep(LOCAL, str(source), str(target)) == FileMark("kept.log", 3, ABC)
    assert target.samefile(source)


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_elsewhere_a_copy_with_its_attributes(source: Path, tmp_path: Path, code: int) -> None:
    target = tmp_path / "kept.log"
    assert keep(without_links(code), str(source), str(target)) == FileMark("kept.log", 3, ABC)
    assert not target.samefile(source)
    assert target.read_bytes() == b"abc"
    stat = target.stat()
    assert (stat.st_mode & 0o777, stat.st_mtime_ns) == (0o640, 5_000_000_000)


def test_another_failure_of_a_link_is_no_reason_to_copy(source: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError) as failed:
        keep(without_links(errno.EIO), str(source), str(tmp_path / "kept.log"))
    assert failed.value.errno == errno.EIO
    assert os.listdir(tmp_path) == [source.name]


def test_nothing_is_written_over(source: Path, tmp_path: Path) -> None:
    (tmp_path / "kept.log").write_bytes(b"another's")
    for files in (LOCAL, without_links(errno.EXDEV)):
        with pytest.raises(FileExistsError):
            keep(files, str(source), str(tmp_path / "kept.log"))


@pytest.mark.parametrize("files", [LOCAL, without_links(errno.EXDEV)], ids=["link", "copy"])
def test_what_was_kept_is_brought_back(source: Path, tmp_path: Path, files: WatchedFiles) -> None:
    bring_back(files, mark_of(LOCAL, str(source)), str(source), str(tmp_path / "back.log"))
    assert (tmp_path / "back.log").read_bytes() == b"abc"


@pytest.mark.parametrize("data", [b"abd", b"ab", b"abcd", b""])
@pytest.mark.parametrize("files", [LOCAL, without_links(errno.EXDEV)], ids=["link", "copy"])
def test_another_file_is_not_brought_back(
    source: Path, tmp_path: Path, files: WatchedFiles, data: bytes
) -> None:
    mark = mark_of(LOCAL, str(source))
    source.write_bytes(data)
    with pytest.raises(CorruptFileError, match="not the file that was kept"):
        bring_back(files, mark, str(source), str(tmp_path / "back.log"))
    assert os.listdir(tmp_path) == [source.name]
