"""The directories that a command may be given; a refusal names what it was given."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.api import path_arguments
from compactor.api.path_arguments import output_dirs
from compactor.errors import RefusedError, UsageError
from compactor.log_dirs.directory_state import MANIFEST, UNFINISHED
from storage.errors import UnsupportedBackendError
from tests.compactor.small_log import build
from tests.support.private_mounts import python_with_mounts


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return build(tmp_path / "log").parent


def refusal_of_log_dir(*paths: Path) -> str:
    with pytest.raises(UsageError) as refused:
        path_arguments.log_dirs([str(path) for path in paths], to_write=True)
    return str(refused.value)


class TestLogDirs:
    def test_paths_become_absolute(self, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(log_dir.parent)
        for given in ("log", "./log/", f"file://{log_dir}"):
            assert path_arguments.log_dirs([given], to_write=True) == (str(log_dir),)

    def test_meta_properties_or_a_partition_make_a_log_directory(self, log_dir: Path) -> None:
        """F-15.3, F-1.1."""
        (log_dir / "meta.properties").unlink()
        assert path_arguments.log_dirs([str(log_dir)], to_write=True)
        fresh = log_dir.parent / "fresh"
        fresh.mkdir()
        (fresh / "meta.properties").write_text("version=1\n")
        assert path_arguments.log_dirs([str(fresh)], to_write=True)

    def test_one_directory_mounted_at_two_places(self, log_dir: Path, tmp_path: Path) -> None:
        """No name tells; and a second lock of this process on one file would be given away."""
        again = tmp_path / "again"
        again.mkdir()
        code = (
            "import sys\nfrom compactor.api import path_arguments\n"
            "path_arguments.log_dirs(sys.argv[1:], to_write=True)\n"
        )
        done = python_with_mounts([f"--bind {log_dir} {again}"], code, log_dir, again)
        assert f"log_dirs {again}: given twice (also as {log_dir})" in done.stderr

    @pytest.mark.parametrize("path", ["", " "])
    def test_an_unset_variable_is_not_the_directory_we_are_in(
        self, log_dir: Path, monkeypatch: pytest.MonkeyPatch, path: str
    ) -> None:
        monkeypatch.chdir(log_dir)
        told = f"{path!r}: is empty; is a variable of the shell not set?"
        with pytest.raises(UsageError, match=f"^log_dirs {re.escape(told)}$"):
            path_arguments.log_dirs([path], to_write=True)
        with pytest.raises(UsageError, match=f"^work_dir {re.escape(told)}$"):
            path_arguments.work_dir(path, [])
        with pytest.raises(UsageError, match=f"^keep_originals {re.escape(told)}$"):
            path_arguments.keep_originals(path, [])
        with pytest.raises(UsageError, match=f"^run_dir {re.escape(told)}$"):
            path_arguments.kept_run(path)

    def test_one_that_is_missing(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        assert refusal_of_log_dir(path) == f"log_dirs {path}: No such file or directory"

    def test_a_file(self, log_dir: Path) -> None:
        path = log_dir / "meta.properties"
        expected = f"log_dirs {path}: Not a directory; did you mean {log_dir}?"
        assert refusal_of_log_dir(path) == expected

    @pytest.mark.parametrize("inside", [[], ["X11-6"], ["X11-6/rgb.txt"], ["a/b.log"]])
    def test_another_directory(self, tmp_path: Path, inside: list[str]) -> None:
        for name in inside:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("")
        assert refusal_of_log_dir(tmp_path) == (
            f"log_dirs {tmp_path}: not a log directory: no meta.properties, "
            "and nothing named TOPIC-PARTITION in it"
        )

    def test_a_partition_directory(self, log_dir: Path) -> None:
        path = log_dir / "orders-0"
        expected = f"is a partition directory; give the log directory, {log_dir}"
        assert refusal_of_log_dir(path) == f"log_dirs {path}: {expected}"

    def test_the_same_one_twice(self, log_dir: Path) -> None:
        link = log_dir.parent / "link"
        link.symlink_to(log_dir)
        expected = f"log_dirs {link}: given twice (also as {log_dir})"
        assert refusal_of_log_dir(log_dir, link) == expected

    def test_an_object_store(self) -> None:
        with pytest.raises(UnsupportedBackendError, match="s3://bucket/x"):
            path_arguments.log_dirs(["s3://bucket/x"], to_write=True)

    def test_one_that_is_only_read_need_not_be_writable(
        self, log_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
        assert path_arguments.log_dirs([str(log_dir)], to_write=False)
        assert refusal_of_log_dir(log_dir).endswith(
            "no permission to write; dry_run and plan only read"
        )


class TestWorkDir:
    def test_it_need_not_be_there_yet(self, tmp_path: Path) -> None:
        assert path_arguments.work_dir(None, []) is None
        assert path_arguments.work_dir(str(tmp_path / "a" / "b"), []) == str(tmp_path / "a" / "b")

    @pytest.mark.parametrize("below", ["", "x", "orders-0/x"])
    def test_never_in_a_log_directory(self, log_dir: Path, below: str) -> None:
        """F-1.4."""
        link = log_dir.parent / "link"
        link.symlink_to(log_dir)
        for path in (log_dir / below, link / below):
            with pytest.raises(UsageError, match="a broker that starts there would fail"):
                path_arguments.work_dir(str(path), [str(log_dir)])

    def test_beside_a_log_directory_of_a_similar_name(self, log_dir: Path) -> None:
        beside = f"{log_dir}-work"
        assert path_arguments.work_dir(beside, [str(log_dir)]) == beside

    def test_what_is_no_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="is not a directory"):
            path_arguments.work_dir(str(tmp_path / "file"), [])
        with pytest.raises(UsageError, match="a path that driver and executors all reach"):
            path_arguments.work_dir("hdfs://h/x", [])

    def test_without_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
        with pytest.raises(UsageError, match="no permission to write in"):
            path_arguments.work_dir(str(tmp_path / "new"), [])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def test_a_new_and_an_empty_directory_are_taken(logs: Path) -> None:
    new, empty = logs.parent / "new", logs.parent / "empty"
    empty.mkdir()
    assert output_dirs([str(new), str(empty)], [str(logs), "/other"]) == (str(new), str(empty))
    assert not new.exists()
    assert output_dirs([], [str(logs)]) == ()


@pytest.mark.parametrize("inside", ["", "x", "../logs"])
def test_one_in_the_other_is_refused(logs: Path, inside: str) -> None:
    for pair in ((logs / inside, logs), (logs, logs / inside), (logs.parent / "l", logs)):
        (logs.parent / "l").unlink(missing_ok=True)
        (logs.parent / "l").symlink_to(logs)
        with pytest.raises(UsageError, match="itself, or one of the two lies in the other"):
            output_dirs([str(pair[0])], [str(pair[1])])


def test_two_copies_in_one_place_are_refused(logs: Path) -> None:
    new = str(logs.parent / "new")
    with pytest.raises(UsageError, match="itself, or one of the two lies in the other"):
        output_dirs([new, new], [str(logs), "/other"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("file", "not empty"),
        (".lock", "holds .lock alone: a run was killed, or a broker was here"),
        (MANIFEST, "holds a finished copy already"),
        (UNFINISHED, "never finished: a run was killed or failed. It is of no use. Remove it"),
    ],
)
def test_a_place_in_use_is_refused(logs: Path, name: str, problem: str) -> None:
    place = logs.parent / "place"
    place.mkdir()
    (place / name).touch() if name == ".lock" else (place / name).mkdir()
    with pytest.raises(RefusedError, match=problem):
        output_dirs([str(place)], [str(logs)])


def refused_in(place: Path, logs: Path) -> str:
    with pytest.raises(RefusedError) as refused:
        output_dirs([str(place)], [str(logs)])
    return str(refused.value)


REMOVING = re.compile(r"\brm\b")


@pytest.mark.parametrize(
    "names", [["orders-0/0.log", "meta.properties"], [MANIFEST, "orders-0/0.log"], [".lock"], ["x"]]
)
def test_nobody_is_asked_to_remove_what_no_run_has_left(logs: Path, names: list[str]) -> None:
    """It may be the log directory of a broker, or a copy on which one has started since."""
    place = logs.parent / "place"
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    assert not REMOVING.search(refused_in(place, logs))


def test_to_remove_an_unfinished_copy_is_advice_only_where_nothing_else_is_in_it(
    logs: Path,
) -> None:
    place = logs.parent / "place"
    (place / UNFINISHED).mkdir(parents=True)
    (place / "orders-0").mkdir()
    (place / "__cluster_metadata-0").mkdir()
    for name in ("orders-0/00000000000000000000.log", "meta.properties", f"{MANIFEST}.tmp"):
        (place / name).touch()
    assert f"Remove it (rm -r {place})" in refused_in(place, logs)
    others: list[tuple[str, Callable[[Path], object]]] = [
        ("notes.txt", Path.touch),
        ("backup", Path.mkdir),
        ("orders-0/backup", Path.mkdir),
        (f"{UNFINISHED}/x", Path.touch),
        ("orders-1", lambda path: path.symlink_to(logs)),
        ("orders-0/1.log", lambda path: path.symlink_to(logs)),
    ]
    for name, make in others:
        make(place / name)
        said = refused_in(place, logs)
        assert str(place / name) in said
        assert not REMOVING.search(said)
        if (place / name).is_dir() and not (place / name).is_symlink():
            (place / name).rmdir()
        else:
            (place / name).unlink()


def test_a_place_that_cannot_be_is_refused(logs: Path) -> None:
    (logs.parent / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        output_dirs([str(logs.parent / "file")], [str(logs)])
    with pytest.raises(UsageError, match=r"there is no directory .*absent"):
        output_dirs([str(logs.parent / "absent" / "new")], [str(logs)])
    (logs / UNFINISHED).mkdir()
    with pytest.raises(RefusedError, match="a copy that was never finished"):
        output_dirs([str(logs.parent / "new")], [str(logs)])
