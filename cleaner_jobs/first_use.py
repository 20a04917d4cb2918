"""Compiles the kernels once for a machine.

numba keeps them beside their source or in the user's cache. A mark in the user's cache says for
which source they were compiled, so that a later run need not load them to find out. What fails here
only makes later starts slower.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib.util import find_spec
from signal import SIGKILL
from subprocess import DEVNULL, STDOUT, Popen

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


def prepare(
    environ: Mapping[str, str],
    say: Callable[[str], None],
    timed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Compile the kernels, unless they are compiled, and say so beforehand.

    environ: of the process that compiles. timed: entered while it does.
    """
    try:
        mark = kernels_mark(environ)
        LOCAL.make_directories(os.path.dirname(mark))
        if _is_made(mark):
            return
        say("first use on this machine: compiling kernels, half a minute")
        with timed():
            _compile(environ, mark, say)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"{where}{error.strerror}: nothing can be kept there, so each start is slow")


def are_kernels_compiled(environ: Mapping[str, str]) -> bool:
    """Return whether the kernels are compiled. Raise OSError where that cannot be seen."""
    return _is_made(kernels_mark(environ))


def _is_made(mark: str) -> bool:
    """Return whether the mark is there, or the environment brings its kernels."""
    return LOCAL.exists(mark) or LOCAL.exists(os.path.join(SOURCES, PACKED))


def kernels_mark(environ: Mapping[str, str]) -> str:
    """Return the file that says that the kernels of this very source are compiled."""
    packages = (os.path.join(SOURCES, name) for name in PACKAGES_WITH_KERNELS)
    files = sorted(file for package in packages for file in _modules_in(package))
    found = ((file, LOCAL.status(file)) for file in files)
    facts = [f"{file} {status.st_mtime_ns} {status.st_size}" for file, status in found]
    facts += [sys.version, platform.machine(), _numba_version()]
    facts.append(environ.get("NUMBA_CACHE_DIR", ""))  # which may lack what another one has
    return kept_file(environ, "kernels", SOURCES, facts)


def _numba_version() -> str:
    """Return what numba's own source says of its version: quicker than what its installer wrote."""
    numba = find_spec("numba")
    folders = numba.submodule_search_locations if numba else None
    return "".join(filter(None, (text_of(os.path.join(f, "_version.py")) for f in folders or ())))


def _modules_in(directory: str) -> Iterator[str]:
    """Yield the paths of the modules in a directory and below it."""
    directories, names = LOCAL.list_names(directory)
    yield from (os.path.join(directory, name) for name in names if name.endswith(".py"))
    for name in directories:
        yield from _modules_in(os.path.join(directory, name))


def _compile(environ: Mapping[str, str], mark: str, say: Callable[[str], None]) -> None:
    """Compile the kernels in a process of its own, and make the mark.

    Not in this process: LLVM calls Python back, and an interrupt that arrives in there is lost, or
    ends the process with a segmentation fault.
    """
    log_path, kills_before = f"{mark}.log", memory_kills()
    compiler: Popen[bytes] | None = None
    try:
        with deferred_signals():  # or one that has started would not be known of
            compiler = _start_compiler(environ, log_path)
        if compiler.wait() != 0:
            why = _why_not(compiler, log_path, kills_before)
            say(f"no compiled kernels are kept, so each run takes half a minute longer{why}")
            return
        import compileall  # only here: it takes as long to load as all the rest of this

        for name in PACKAGES_WITH_KERNELS:  # bytecode, which workers of Spark never write
            compileall.compile_dir(os.path.join(SOURCES, name), quiet=2)
        LOCAL.open_named(mark, "ab").close()
        forget_older(mark)  # and the log
        directory = os.path.dirname(mark)
        for name in LOCAL.list_names(directory)[1]:
            if name.startswith(("spark-", "launch-")):  # of Java's start, kept by earlier versions
                forget(os.path.join(directory, name))
    except BaseException:
        with deferred_signals():
            if compiler is not None:
                compiler.kill()
                compiler.wait()
            with suppress(OSError):
                forget(log_path)
        raise


def _start_compiler(environ: Mapping[str, str], log_path: str) -> Popen[bytes]:
    with LOCAL.open_named(log_path, "wb") as log:
        return Popen(
            [sys.executable, "-P", "-m", KERNELS_MODULE],  # the modules that this process has
            stdin=DEVNULL,
            stdout=log,
            stderr=STDOUT,
            start_new_session=True,  # Ctrl-C reaches it through this process, once
            env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )


def _why_not(compiler: Popen[bytes], log_path: str, kills_before: int | None) -> str:
    """Return why nothing was compiled, as the end of a sentence."""
    now = memory_kills()
    if compiler.returncode != -SIGKILL or now is None or now <= (kills_before or 0):
        lines = (text_of(log_path) or "").splitlines()
        return f": {lines[-1] if lines else 'it does not say why'}; see {log_path}"
    forget(log_path)
    return ": the kernel killed a process for want of memory"
