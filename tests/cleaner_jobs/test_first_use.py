"""What is prepared for a machine is made once, named after what it fits, and not in the way."""

import compileall
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from cleaner_jobs import first_use, user_cache
from cleaner_jobs.spark import java_cache
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE, own_environ
from compactor.command_line.interrupts import SignalNotes


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
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that has a line for each time that kernels were compiled."""
    times = tmp_path / "compiled"
    times.touch()
    set_module(
        monkeypatch, tmp_path, "KERNELS_MODULE", f"open({str(times)!r}, 'a').write('once\\n')"
    )
    monkeypatch.setattr(compileall, "compile_dir", lambda *_, **__: None)
    monkeypatch.setattr(java_cache, "cores", lambda: 2)
    return times


def prepare(
    environ: dict[str, str],
    say: Callable[[str], None],
    timed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    first_use.prepare(environ, lambda: java_cache.to_make(environ), say, timed)


def set_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, constant: str, code: str) -> None:
    """Have the module that makes a thing be this code."""
    module = f"fake_{constant.lower()}"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    owner = first_use if constant == "KERNELS_MODULE" else java_cache
    monkeypatch.setattr(owner, constant, module)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_archive_is_named_after_java_and_jars(environ: dict[str, str], tmp_path: Path) -> None:
    first = java_cache.archive_path(environ)
    assert os.path.dirname(first) == str(tmp_path / "cache" / "log-compactor")
    assert java_cache.archive_path(environ) == first
    (tmp_path / "spark" / "jars" / "new.jar").touch()
    second = java_cache.archive_path(environ)
    assert second != first
    environ["JAVA_HOME"] = str(tmp_path)
    assert java_cache.archive_path(environ) not in (first, second)


def test_both_are_made_once_and_said_once(
    environ: dict[str, str],
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    archive = java_cache.archive_path(own_environ(environ, local=True))
    set_module(monkeypatch, tmp_path, "MAKER_MODULE", f"open({str(archive)!r}, 'w').close()")
    told: list[str] = []
    timed: list[str] = []

    @contextmanager
    def timer() -> Iterator[None]:
        yield
        timed.append(compiled.read_text())

    prepare(environ, told.append, timer)
    prepare(environ, told.append, timer)
    assert compiled.read_text() == "once\n"
    assert timed == ["once\n"], "only the turn that compiled is timed, and all of it"
    assert len(told) == 1
    assert "first use" in told[0]
    kept = Path(user_cache.cache_dir(environ)).iterdir()
    assert set(map(str, kept)) == {archive, first_use.kernels_mark(environ)}


def test_an_archive_that_cannot_be_made_is_a_message_and_no_error(
    environ: dict[str, str],
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    set_module(monkeypatch, tmp_path, "MAKER_MODULE", "raise SystemExit('no disk')")
    told: list[str] = []
    prepare(environ, told.append)
    assert compiled.read_text() == "once\n"
    log = Path(told[-1].rpartition(" ")[2])
    assert "no disk" in log.read_text()
    prepare(environ, told.append)
    assert len(told) == 2, "what failed is not tried at every run"


def test_an_archive_whose_maker_was_killed_for_memory_is_tried_again(
    environ: dict[str, str],
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    kills = iter(range(100))
    monkeypatch.setattr(first_use, "memory_kills", lambda: next(kills))
    set_module(monkeypatch, tmp_path, "MAKER_MODULE", "import os; os.kill(os.getpid(), 9)")
    told: list[str] = []
    for _ in range(2):
        prepare(environ, told.append)
    line = (
        "no archive of Java classes was made, so each start takes longer: the kernel killed a "
        "process for want of memory"
    )
    assert [told[1], told[3]] == [line, line]
    assert compiled.read_text() == "once\n"


@pytest.mark.parametrize("why", ["one core", "spark-submit", "trimmed"])
def test_no_archive_where_it_would_not_pay(
    why: str,
    environ: dict[str, str],
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    set_module(monkeypatch, tmp_path, "MAKER_MODULE", "raise SystemExit('was asked')")
    match why:
        case "one core":
            monkeypatch.setattr(java_cache, "cores", lambda: 1)
        case "spark-submit":
            environ[SUBMITTED_VARIABLE] = "12345"
        case "trimmed":
            (tmp_path / "java" / "lib" / "server" / "classes.jsa").unlink()
    told: list[str] = []
    prepare(environ, told.append)
    assert compiled.read_text() == "once\n"
    assert told == ["first use on this machine: compiling kernels, half a minute"]


@pytest.mark.usefixtures("compiled")
def test_kernels_that_cannot_be_compiled_are_a_message_and_no_error(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environ[SUBMITTED_VARIABLE] = "12345"  # no archive
    set_module(monkeypatch, tmp_path, "KERNELS_MODULE", "raise SystemExit('no memory')")
    told: list[str] = []
    prepare(environ, told.append)
    log = Path(told[-1].rpartition(" ")[2])
    said = "no compiled kernels are kept, so each run takes half a minute longer: no memory; see"
    assert told[-1] == f"{said} {log}"
    assert "no memory" in log.read_text()
    assert not Path(first_use.kernels_mark(environ)).exists()
    set_module(monkeypatch, tmp_path, "KERNELS_MODULE", "")
    prepare(environ, told.append)
    assert len(told) == 3, "it is tried again: a run needs them"
    assert list(log.parent.iterdir()) == [Path(first_use.kernels_mark(environ))]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_both_and_leaves_nothing(
    number: signal.Signals,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In the middle of LLVM it would be lost, or end the process with a segmentation fault."""
    pids = [tmp_path / "archive.pid", tmp_path / "kernels.pid"]
    sleeping = "import os, pathlib, signal, time\npathlib.Path({!r}).write_text(str(os.getpid()))\n"
    set_module(
        monkeypatch,
        tmp_path,
        "MAKER_MODULE",
        sleeping.format(str(pids[0])) + "try: time.sleep(60)\nexcept KeyboardInterrupt: pass",
    )
    interrupting = (
        f"while not os.path.exists({str(pids[0])!r}): time.sleep(0.01)\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # as good as lost
        f"os.kill(os.getppid(), {number})\ntime.sleep(60)"
    )
    set_module(
        monkeypatch, tmp_path, "KERNELS_MODULE", sleeping.format(str(pids[1])) + interrupting
    )
    with SignalNotes(), pytest.raises(KeyboardInterrupt):
        prepare(environ, lambda _: None)
    assert not any(is_running(int(pid.read_text())) for pid in pids)
    assert os.listdir(user_cache.cache_dir(environ)) == []


def test_a_cache_that_cannot_be_written_is_a_message_and_no_error(
    environ: dict[str, str], compiled: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    environ["XDG_CACHE_HOME"] = str(tmp_path / "file")
    told: list[str] = []
    prepare(environ, told.append)
    assert compiled.read_text() == ""
    assert "file/log-compactor: Not a directory" in told[0]


def test_the_mark_tells_the_interpreter_and_the_cache(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = first_use.kernels_mark(environ)
    assert first_use.kernels_mark({**environ, "NUMBA_CACHE_DIR": "/another"}) != mark
    monkeypatch.setattr(sys, "version", "3.99")
    assert first_use.kernels_mark(environ) != mark
