"""What is prepared for a machine is made once, named after what it fits, and not in the way."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cleaner_jobs.spark import class_archive, first_use


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    its_own_archive = tmp_path / "java" / "lib" / "server" / "classes.jsa"
    its_own_archive.parent.mkdir(parents=True)
    its_own_archive.touch()
    return {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "SPARK_HOME": str(tmp_path / "spark"),
        "JAVA_HOME": str(tmp_path / "java"),
    }


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(first_use, "_compile_kernels", lambda: calls.append("compiled"))
    monkeypatch.setattr(first_use, "cores", lambda: 2)
    return calls


def set_maker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    (tmp_path / "fake_maker.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(class_archive, "MAKER_MODULE", "fake_maker")


def test_the_archive_is_named_after_java_and_jars(environ: dict[str, str], tmp_path: Path) -> None:
    first = class_archive.archive_path(environ)
    assert first.parent == tmp_path / "cache" / "log-compactor"
    assert class_archive.archive_path(environ) == first
    (tmp_path / "spark" / "jars" / "new.jar").touch()
    second = class_archive.archive_path(environ)
    assert second != first
    environ["JAVA_HOME"] = str(tmp_path)
    assert class_archive.archive_path(environ) not in (first, second)


def test_only_what_an_earlier_state_of_the_same_folder_left_is_removed(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    old, new = (class_archive.kept_file(environ, "spark", Path("/a"), [s]) for s in ("1", "2"))
    other = class_archive.kept_file(environ, "spark", Path("/b"), ["1"])
    new.parent.mkdir()
    for file in (old, new, other):
        file.touch()
    class_archive.forget_older(new)
    assert set(new.parent.iterdir()) == {new, other}


def test_both_are_made_once_and_said_once(
    environ: dict[str, str],
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    archive = class_archive.archive_path(environ)
    set_maker(monkeypatch, tmp_path, f"open({str(archive)!r}, 'w').close()")
    told: list[str] = []
    timed: list[int] = []

    @contextmanager
    def timer() -> Iterator[None]:
        yield
        timed.append(len(compiled))

    first_use.prepare(environ, told.append, timer)
    first_use.prepare(environ, told.append, timer)
    assert compiled == ["compiled"]
    assert timed == [1], "only the turn that compiled is timed, and all of it"
    assert len(told) == 1
    assert "first use" in told[0]
    assert set(archive.parent.iterdir()) == {archive, first_use.kernels_mark(environ)}


def test_an_archive_that_cannot_be_made_is_a_message_and_no_error(
    environ: dict[str, str],
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    set_maker(monkeypatch, tmp_path, "raise SystemExit('no disk')")
    told: list[str] = []
    first_use.prepare(environ, told.append)
    assert compiled == ["compiled"]
    log = Path(told[-1].rpartition(" ")[2])
    assert "no disk" in log.read_text()
    first_use.prepare(environ, told.append)
    assert len(told) == 2, "what failed is not tried at every run"


@pytest.mark.parametrize("why", ["one core", "spark-submit", "trimmed"])
def test_no_archive_where_it_would_not_pay(
    why: str,
    environ: dict[str, str],
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    set_maker(monkeypatch, tmp_path, "raise SystemExit('was asked')")
    match why:
        case "one core":
            monkeypatch.setattr(first_use, "cores", lambda: 1)
        case "spark-submit":
            environ[class_archive.SUBMITTED_VARIABLE] = "12345"
        case "trimmed":
            (tmp_path / "java" / "lib" / "server" / "classes.jsa").unlink()
    told: list[str] = []
    first_use.prepare(environ, told.append)
    assert compiled == ["compiled"]
    assert told == ["first use on this machine: compiling kernels, half a minute"]


def test_a_cache_that_cannot_be_written_is_a_message_and_no_error(
    environ: dict[str, str], compiled: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    environ["XDG_CACHE_HOME"] = str(tmp_path / "file")
    told: list[str] = []
    first_use.prepare(environ, told.append)
    assert compiled == []
    assert "file/log-compactor: Not a directory" in told[0]


def test_the_mark_tells_the_interpreter(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = first_use.kernels_mark(environ)
    monkeypatch.setattr(sys, "version", "3.99")
    assert first_use.kernels_mark(environ) != mark
