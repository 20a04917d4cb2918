"""Prepares a machine once, so that later starts are fast: compiled kernels, Java's class archive.

Both are kept: the kernels by numba, beside their source or in the user's cache, the archive in the
user's cache. A mark there says for which source the kernels were compiled, so that a later run
need not load them to find out. What fails here only makes later starts slower.
"""

import compileall
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from signal import SIGINT, SIGKILL, Signals
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired
from typing import NamedTuple, Self

from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.spark.environment import own_environ
from cleaner_jobs.spark.java_cache import (
    MAKER_MODULE,
    MAKING_SECONDS,
    SUBMITTED_VARIABLE,
    archive_path,
    can_be_made,
    forget,
    forget_older,
    kept_file,
    text_of,
)
from cleaner_jobs.spark.local_size import cores, memory_kills
from cleaner_jobs.spark.worker_daemon import KERNELS_MODULE
from storage.files.local import LOCAL

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(LOCAL.resolve(__file__))))
PACKAGES_WITH_KERNELS = ("storage", "cleaner_jobs")
PACKED = (
    "log-compactor-packed.json"  # beside the packages of an environment that brings its kernels
)
# For the makers: where they put temporary files, so that those of a killed one go with a run's.
WORK_DIR_VARIABLE = "COMPACTOR_WORK_DIR"
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
        LOCAL.make_directories(os.path.dirname(mark))
        archive = archive_path(own_environ(environ, local=True))
        log_path = log_of(archive)  # stays where it could not be made
        archive_is_wanted = (
            SUBMITTED_VARIABLE not in environ  # or Java is there already
            and cores() >= FEWEST_CORES
            and can_be_made(environ)
            and not (LOCAL.exists(archive) or LOCAL.exists(log_path))
        )
        has_kernels = LOCAL.exists(mark) or LOCAL.exists(os.path.join(SOURCES, PACKED))
        if has_kernels and not archive_is_wanted:
            return
        what = ["compiling kernels"] * (not has_kernels)
        what += ["archiving Java classes"] * archive_is_wanted
        say(f"first use on this machine: {' and '.join(what)}, half a minute")
        with timed():
            _make_both(
                environ, None if has_kernels else mark, log_path if archive_is_wanted else None, say
            )
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"{where}{error.strerror}: nothing can be kept there, so each start is slow")


def kernels_mark(environ: Mapping[str, str]) -> str:
    """Return the file that says that the kernels of this very source are compiled."""
    packages = (os.path.join(SOURCES, name) for name in PACKAGES_WITH_KERNELS)
    files = sorted(file for package in packages for file in _modules_in(package))
    found = ((file, LOCAL.status(file)) for file in files)
    facts = [f"{file} {status.st_mtime_ns} {status.st_size}" for file, status in found]
    facts += [sys.version, platform.machine(), metadata.version("numba")]
    facts.append(environ.get("NUMBA_CACHE_DIR", ""))  # which may lack what another one has
    return kept_file(environ, "kernels", SOURCES, facts)


def _modules_in(directory: str) -> Iterator[str]:
    """Yield the paths of the modules in a directory and below it."""
    directories, names = LOCAL.list_names(directory)
    yield from (os.path.join(directory, name) for name in names if name.endswith(".py"))
    for name in directories:
        yield from _modules_in(os.path.join(directory, name))


def log_of(path: str) -> str:
    """Return where the process that makes a file says what went wrong."""
    return f"{os.path.splitext(path)[0]}.log"


class _Maker(NamedTuple):
    """A process that makes one of the two things, and says in a file what went wrong."""

    process: Popen[bytes]
    log_path: str
    ended_by: Signals  # where it is not to go on
    kills_before: int | None  # of the kernel, for memory

    @classmethod
    def start(
        cls, module: str, environ: Mapping[str, str], log_path: str, ended_by: Signals
    ) -> Self:
        LOCAL.make_directories(os.path.dirname(log_path))
        kills_before = memory_kills()
        try:
            with LOCAL.open_named(log_path, "wb") as log:
                process = Popen(
                    [sys.executable, "-P", "-m", module],  # the modules that this process has
                    stdin=DEVNULL,
                    stdout=log,
                    stderr=STDOUT,
                    start_new_session=True,  # Ctrl-C reaches it through whoever started it, once
                    env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        except OSError:
            forget(log_path)  # or the archive would not be tried again
            raise
        return cls(process, log_path, ended_by, kills_before)

    def made_it(self, seconds: float | None = None) -> bool:
        """Return whether it came to its end, after at most so many seconds, without an error."""
        try:
            code = self.process.wait(seconds)
        except TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code == 0:
            forget(self.log_path)
        return code == 0

    def why_not(self) -> str:
        """Return why it has not made it; one that was killed is tried again next time."""
        now = memory_kills()
        if self.process.returncode != -SIGKILL or now is None or now <= (self.kills_before or 0):
            lines = (text_of(self.log_path) or "").splitlines()
            return f": {lines[-1] if lines else 'it does not say why'}; see {self.log_path}"
        forget(self.log_path)
        return ": the kernel killed a process for want of memory"

    def stop(self) -> None:
        """End it, with what it started, unless it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(self.ended_by)
            try:
                self.process.wait(MAKING_SECONDS)
            except TimeoutExpired:  # whatever keeps it
                self.process.kill()
                self.process.wait()
            forget(self.log_path)


def _make_both(
    environ: Mapping[str, str],
    mark: str | None,
    archive_log: str | None,
    say: Callable[[str], None],
) -> None:
    """mark: for the kernels; None: they are there. archive_log: None: no archive is wanted."""
    archive = kernels = None
    try:
        with deferred_signals():  # or one that has started would not be known of
            if archive_log:
                archive = _Maker.start(MAKER_MODULE, environ, archive_log, SIGINT)
            if mark:
                # Not in this process: LLVM calls Python back, and an interrupt that arrives in
                # there is lost, or ends the process with a segmentation fault.
                kernels = _Maker.start(KERNELS_MODULE, environ, log_of(mark), SIGKILL)
        if mark and kernels:
            if kernels.made_it():
                for name in PACKAGES_WITH_KERNELS:  # bytecode, which workers of Spark never write
                    compileall.compile_dir(os.path.join(SOURCES, name), quiet=2)
                LOCAL.open_named(mark, "ab").close()
                forget_older(mark)
            else:
                say(
                    "no compiled kernels are kept, so each run takes half a minute longer"
                    f"{kernels.why_not()}"
                )
        if archive and not archive.made_it(MAKING_SECONDS):
            say(
                "no archive of Java classes was made, so each start takes longer"
                f"{archive.why_not()}"
            )
    except BaseException:
        with deferred_signals():
            for maker in filter(None, (archive, kernels)):
                maker.stop()
        raise
