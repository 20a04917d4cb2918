"""Does once for a machine what would make every start slow: compiled kernels, Java's class archive.

Both are kept: the kernels by numba, beside their source or in the user's cache, the archive in the
user's cache. A mark there says for which source the kernels were compiled, so that a later run
need not load them to find out. What fails here costs time at later starts and nothing else.
"""

import compileall
import os
import platform
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from pathlib import Path
from signal import SIGINT
from subprocess import Popen, TimeoutExpired

from cleaner_jobs.spark.class_archive import (
    MAKING_SECONDS,
    SUBMITTED_VARIABLE,
    archive_path,
    can_be_made,
    forget_older,
    kept_file,
    start_making,
)
from cleaner_jobs.undisturbed import undisturbed

SOURCES = Path(__file__).resolve().parents[2]
PACKAGES_WITH_KERNELS = ("storage", "cleaner_jobs")
PACKED = (
    "log-compactor-packed.json"  # beside the packages of an environment that brings its kernels
)
FEWEST_CORES = 2  # on one core, making the archive would lengthen the first run instead


def prepare(
    environ: Mapping[str, str],
    say: Callable[[str], None],
    timed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Prepare what is not prepared yet, both things at once, and say so beforehand.

    JAVA_HOME in environ names the Java to be used, if it is not the one in PATH. timed: entered
    while something is being prepared.
    """
    mark = kernels_mark(environ)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        log_path = archive_path(environ).with_suffix(".log")  # stays where it could not be made
        archive_is_wanted = (
            SUBMITTED_VARIABLE not in environ  # or Java is there already
            and cores() >= FEWEST_CORES
            and can_be_made(environ)
            and not (archive_path(environ).exists() or log_path.exists())
        )
        has_kernels = mark.exists() or (SOURCES / PACKED).exists()
        if has_kernels and not archive_is_wanted:
            return
        what = ["compiling kernels"] * (not has_kernels)
        what += ["archiving Java classes"] * archive_is_wanted
        say(f"first use on this machine: {' and '.join(what)}, half a minute")
        with timed():
            maker = start_making(environ, log_path) if archive_is_wanted else None
            _make_both(None if has_kernels else mark, maker, log_path, say)
    except OSError as error:
        say(f"{error.filename}: {error.strerror}: nothing can be kept there, so each start is slow")


def kernels_mark(environ: Mapping[str, str]) -> Path:
    """The file that says that the kernels of this very source are compiled."""
    files = sorted(p for name in PACKAGES_WITH_KERNELS for p in (SOURCES / name).rglob("*.py"))
    facts = [f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files]
    facts += [sys.version, platform.machine(), metadata.version("numba")]
    return kept_file(environ, "kernels", SOURCES, facts)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make_both(
    mark: Path | None, maker: Popen[bytes] | None, log_path: Path, say: Callable[[str], None]
) -> None:
    """mark: for the kernels; None: they are there. maker: of the archive; None: none is wanted."""
    try:
        if mark:
            _compile_kernels()
            mark.touch()
            forget_older(mark)
        if maker:
            _wait(maker, log_path, say)
    except KeyboardInterrupt:
        if maker:
            _stop(maker, log_path)
        raise


def _compile_kernels() -> None:
    """The kernels, and the bytecode around them, which workers of Spark never write."""
    from cleaner_jobs.tasks.kernels_warm import warm  # loads numba, which only this way needs

    warm()
    for name in PACKAGES_WITH_KERNELS:
        compileall.compile_dir(SOURCES / name, quiet=2)


def _wait(maker: Popen[bytes], log_path: Path, say: Callable[[str], None]) -> None:
    try:
        code = maker.wait(MAKING_SECONDS)
    except TimeoutExpired:
        maker.kill()
        code = maker.wait()
    if code:
        say(f"no archive of Java classes was made, so each start takes longer; see {log_path}")
    else:
        log_path.unlink(missing_ok=True)


def _stop(maker: Popen[bytes], log_path: Path) -> None:
    """Leave neither the process behind, nor its Java, nor what they wrote."""
    with undisturbed():
        maker.send_signal(SIGINT)
        maker.wait()
        log_path.unlink(missing_ok=True)
