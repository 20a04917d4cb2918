"""Makes what later starts on this machine need, once: compiled kernels, Java's class archive.

Both are kept: the kernels by numba, beside their source or in the user's cache, the archive in the
user's cache. A mark there says for which source the kernels were compiled, so that a later run
need not load them to find out. What fails here only makes later starts slower.
"""

import compileall
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from signal import SIGKILL, Signals
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired
from typing import NamedTuple, Self

from cleaner_jobs.machine_size import memory_kills
from cleaner_jobs.signals import deferred_signals
from cleaner_jobs.user_cache import forget, forget_older, kept_file, text_of
from storage.files.local import LOCAL

SOURCES = os.path.dirname(os.path.dirname(LOCAL.resolve(__file__)))
PACKAGES_WITH_KERNELS = ("storage", "cleaner_jobs")
KERNELS_MODULE = "cleaner_jobs.tasks.kernel_warm_up"
PACKED = (
    "log-compactor-packed.json"  # beside the packages of an environment that brings its kernels
)
# For the makers: where they put temporary files, so that those of a killed one go with a run's.
WORK_DIR_VARIABLE = "COMPACTOR_WORK_DIR"
ENDING_SECONDS = 180  # that a maker has to end in after an interrupt


class ToMake(NamedTuple):
    """Something that a process of its own makes, once for this machine."""

    what: str  # that is said beforehand
    module: str  # that is run, and ends with 0 when it has made it
    log_path: str  # says what went wrong, and stays where it did
    without: str  # that is said where it could not be made
    ended_by: Signals = SIGKILL  # where it is not to go on
    seconds: float | None = None  # that it may take at most
    when_made: Callable[[], None] = lambda: None


def prepare(
    environ: Mapping[str, str],
    to_make: Callable[[], Sequence[ToMake]],
    say: Callable[[str], None],
    timed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Make what is not there yet, all at once, and say so beforehand.

    environ: of the makers. to_make: returns what is not there, and may fail as a cache that cannot
    be read does. timed: entered while something is being made.
    """
    try:
        wanted = to_make()
        if wanted:
            what = " and ".join(each.what for each in wanted)
            say(f"first use on this machine: {what}, half a minute")
            with timed():
                _make(environ, wanted, say)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"{where}{error.strerror}: nothing can be kept there, so each start is slow")


def kernels_to_make(environ: Mapping[str, str]) -> list[ToMake]:
    """Return the kernels, unless they are compiled. Raise OSError where none can be kept."""
    mark = kernels_mark(environ)
    LOCAL.make_directories(os.path.dirname(mark))
    if LOCAL.exists(mark) or LOCAL.exists(os.path.join(SOURCES, PACKED)):
        return []

    def keep() -> None:
        for name in PACKAGES_WITH_KERNELS:  # bytecode, which workers of Spark never write
            compileall.compile_dir(os.path.join(SOURCES, name), quiet=2)
        LOCAL.open_named(mark, "ab").close()
        forget_older(mark)

    # Not in this process: LLVM calls Python back, and an interrupt that arrives in there is lost,
    # or ends the process with a segmentation fault.
    return [
        ToMake(
            what="compiling kernels",
            module=KERNELS_MODULE,
            log_path=log_of(mark),
            without="no compiled kernels are kept, so each run takes half a minute longer",
            when_made=keep,
        )
    ]


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


def _make(environ: Mapping[str, str], wanted: Sequence[ToMake], say: Callable[[str], None]) -> None:
    makers: list[_Maker] = []
    try:
        with deferred_signals():  # or one that has started would not be known of
            for each in wanted:
                makers += [_Maker.start(each, environ)]  # each known once it has started
        for maker in makers:
            if maker.made_it():
                maker.of.when_made()
            else:
                say(f"{maker.of.without}{maker.why_not()}")
    except BaseException:
        with deferred_signals():
            for maker in makers:
                maker.stop()
        raise


class _Maker(NamedTuple):
    """The process that makes a thing."""

    of: ToMake
    process: Popen[bytes]
    kills_before: int | None  # of the kernel, for memory

    @classmethod
    def start(cls, of: ToMake, environ: Mapping[str, str]) -> Self:
        LOCAL.make_directories(os.path.dirname(of.log_path))
        kills_before = memory_kills()
        try:
            with LOCAL.open_named(of.log_path, "wb") as log:
                process = Popen(
                    [sys.executable, "-P", "-m", of.module],  # the modules that this process has
                    stdin=DEVNULL,
                    stdout=log,
                    stderr=STDOUT,
                    start_new_session=True,  # Ctrl-C reaches it through whoever started it, once
                    env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
        except OSError:
            forget(of.log_path)  # or what has one would not be tried again
            raise
        return cls(of, process, kills_before)

    def made_it(self) -> bool:
        """Return whether it came to its end, in its time, without an error."""
        try:
            code = self.process.wait(self.of.seconds)
        except TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code == 0:
            forget(self.of.log_path)
        return code == 0

    def why_not(self) -> str:
        """Return why it has not made it; one that was killed is tried again next time."""
        log_path, now = self.of.log_path, memory_kills()
        if self.process.returncode != -SIGKILL or now is None or now <= (self.kills_before or 0):
            lines = (text_of(log_path) or "").splitlines()
            return f": {lines[-1] if lines else 'it does not say why'}; see {log_path}"
        forget(log_path)
        return ": the kernel killed a process for want of memory"

    def stop(self) -> None:
        """End it, with what it started, unless it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(self.of.ended_by)
            try:
                self.process.wait(ENDING_SECONDS)
            except TimeoutExpired:  # whatever keeps it
                self.process.kill()
                self.process.wait()
            forget(self.of.log_path)
