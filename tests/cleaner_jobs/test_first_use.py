"""What is prepared for a machine is made once, named after what it fits, and not in the way."""

import compileall
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cleaner_jobs import first_use, user_cache
from compactor.command_line.interrupts import SignalNotes


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that has a line for each time that kernels were compiled."""
    times = tmp_path / "compiled"
    times.touch()
    set_compiler(monkeypatch, tmp_path, f"open({str(times)!r}, 'a').write('once\\n')")
    monkeypatch.setattr(compileall, "compile_dir", lambda *_, **__: None)
    return times


def set_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """Have the module that compiles kernels be this code."""
    (tmp_path / "fake_kernels.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(first_use, "KERNELS_MODULE", "fake_kernels")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_kernels_are_compiled_once_and_that_is_said_once(
    environ: dict[str, str], compiled: Path
) -> None:
    told: list[str] = []
    timed: list[str] = []

    @contextmanager
    def timer() -> Iterator[None]:
        yield
        timed.append(compiled.read_text())

    for _ in range(2):
        first_use.prepare(environ, told.append, timer)
    assert compiled.read_text() == "once\n"
    assert timed == ["once\n"], "only the turn that compiled is timed, and all of it"
    assert told == ["first use on this machine: compiling kernels, half a minute"]
    kept = Path(user_cache.cache_dir(environ)).iterdir()
    assert list(map(str, kept)) == [first_use.kernels_mark(environ)]


@pytest.mark.usefixtures("compiled")
def test_what_earlier_versions_kept_of_the_start_of_java_is_removed(
    environ: dict[str, str],
) -> None:
    cache = Path(user_cache.cache_dir(environ))
    cache.mkdir(parents=True)
    for name in ("spark-1-2.jsa", "spark-1-2.log", "launch-1-2", "kernels-1-2", "past-runs.json"):
        (cache / name).touch()
    first_use.prepare(environ, lambda _: None)
    mark = os.path.basename(first_use.kernels_mark(environ))
    assert set(os.listdir(cache)) == {mark, "kernels-1-2", "past-runs.json"}


@pytest.mark.usefixtures("compiled")
def test_a_compiler_that_was_killed_for_memory_is_named_so_and_tried_again(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kills = iter(range(100))
    monkeypatch.setattr(first_use, "memory_kills", lambda: next(kills))
    set_compiler(monkeypatch, tmp_path, "import os; os.kill(os.getpid(), 9)")
    told: list[str] = []
    for _ in range(2):
        first_use.prepare(environ, told.append)
    line = (
        "no compiled kernels are kept, so each run takes half a minute longer: the kernel killed a "
        "process for want of memory"
    )
    assert [told[1], told[3]] == [line, line]
    assert os.listdir(user_cache.cache_dir(environ)) == []


@pytest.mark.usefixtures("compiled")
def test_kernels_that_cannot_be_compiled_are_a_message_and_no_error(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_compiler(monkeypatch, tmp_path, "raise SystemExit('no memory')")
    told: list[str] = []
    first_use.prepare(environ, told.append)
    log = Path(told[-1].rpartition(" ")[2])
    said = "no compiled kernels are kept, so each run takes half a minute longer: no memory; see"
    assert told[-1] == f"{said} {log}"
    assert "no memory" in log.read_text()
    assert not Path(first_use.kernels_mark(environ)).exists()
    set_compiler(monkeypatch, tmp_path, "")
    first_use.prepare(environ, told.append)
    assert len(told) == 3, "it is tried again: a run needs them"
    assert list(log.parent.iterdir()) == [Path(first_use.kernels_mark(environ))]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_compiler_and_leaves_nothing(
    number: signal.Signals,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In the middle of LLVM it would be lost, or end the process with a segmentation fault."""
    pid = tmp_path / "kernels.pid"
    set_compiler(
        monkeypatch,
        tmp_path,
        "import os, pathlib, signal, time\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # as good as lost
        f"os.kill(os.getppid(), {number})\ntime.sleep(60)",
    )
    with SignalNotes(), pytest.raises(KeyboardInterrupt):
        first_use.prepare(environ, lambda _: None)
    assert not is_running(int(pid.read_text()))
    assert os.listdir(user_cache.cache_dir(environ)) == []


def test_a_cache_that_cannot_be_written_is_a_message_and_no_error(
    environ: dict[str, str], compiled: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    environ["XDG_CACHE_HOME"] = str(tmp_path / "file")
    told: list[str] = []
    first_use.prepare(environ, told.append)
    assert compiled.read_text() == ""
    assert "file/log-compactor: Not a directory" in told[0]


def test_the_mark_tells_the_interpreter_and_the_cache(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = first_use.kernels_mark(environ)
    assert first_use.kernels_mark({**environ, "NUMBA_CACHE_DIR": "/another"}) != mark
    monkeypatch.setattr(sys, "version", "3.99")
    assert first_use.kernels_mark(environ) != mark
