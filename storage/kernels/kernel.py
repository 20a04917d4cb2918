"""How kernels are compiled: plain loops over arrays, no Python object, cached between processes.

A kernel raises nothing: it answers with a code and a place. What it is called with is not checked.

numba takes a cached kernel for up to date while its own file is what it was, yet the constants and
functions of other modules are compiled into it: after a change there, kernels of two states of the
source would work on one log. So the cache is checked against all modules that a kernel's imports.

Where the source stands in a directory that this user cannot write to, what is kept beside it is
read all the same: a packed environment brings kernels that no executor is to compile. A cache
directory that NUMBA_CACHE_DIR names is the only one that is read.

What is wrong with a cache costs time, and is never an error of what a kernel works on: a kernel
that cannot be read there is compiled, and one that cannot be kept is so again by the next process.

Kernels are compiled for the processor of this machine, unless NUMBA_CPU_FEATURES says for which: a
packed environment brings kernels that are to serve every machine of a cluster.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from glob import escape
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any, TypeVar, cast

import numba
from llvmlite.binding import get_host_cpu_features
from numba import njit
from numba.core import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserWideCacheLocator,
)
from numba.core.registry import cpu_target

from storage.errors import UnfitProcessorError
from storage.user_home import home_of


def features() -> frozenset[str]:
    """Return what kernels may use of the processor: LLVM's words, each after a plus or a minus."""
    *_, known = cpu_target.target_context.codegen().magic_tuple()
    return frozenset(str(known).split(","))


def require_processor() -> None:
    """Raise UnfitProcessorError where kernels are compiled for what this processor cannot do."""
    wanted = getattr(config, "CPU_FEATURES", None)
    if not wanted:
        return
    has = get_host_cpu_features()
    asked = (word.strip() for word in wanted.split(","))
    missing = [word[1:] for word in asked if word.startswith("+") and not has.get(word[1:])]
    if missing:
        name, words = getattr(config, "CPU_NAME", None), ", ".join(missing)
        raise UnfitProcessorError(f"kernels are compiled for {name}, this processor lacks {words}")


require_processor()  # before a kernel is called: an instruction that is missing ends the process

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)(?:\s+import\s+(\([^)]*\)|.*))?", re.MULTILINE)
_NAME = re.compile(r"\w+")


def kernel(function: Function) -> Function:
    """Compile at the first call with types not met before, or load what an earlier process made.

    Other threads go on while it runs. It makes no arrays, and counts no references to those that it
    is given: that takes longer than the work where a row of a table is looked at.
    """
    return _compiled(function, counts_references=False)


def allocating_kernel(function: Function) -> Function:
    """Compile as kernel does, for a function that may make arrays."""
    return _compiled(function, counts_references=True)


def _compiled(function: Function, counts_references: bool) -> Function:
    # without `cache`, by which numba would ask for a place to write to; `_nrt` has no type
    options: Any = {"nogil": True, "_nrt": counts_references}
    compiled: Any = njit(**options)(function)
    if hasattr(compiled, "_cache"):  # not so where NUMBA_DISABLE_JIT leaves the function as it is
        compiled._cache = _KernelCache(function)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """Compile as part of the kernels that call it: LLVM's way, numba's own takes twice as long."""
    return cast(Function, njit(forceinline=True)(function))


class _InTheHome(UserWideCacheLocator):
    """The place of a kernel that cannot be kept beside its source, for a user without HOME, too.

    numba would make a directory of the name ~ in the current one.
    """

    def get_cache_path(self) -> str:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home_of(os.environ), ".cache")
        source = self._py_file
        return os.path.join(base, "numba", self.get_suitable_cache_subpath(source))  # type: ignore[no-untyped-call]


class _BesideTheSource(InTreeCacheLocator):
    """The last place to look for a kernel: whether or not anything can be written there."""

    def ensure_cache_path(self) -> None:
        """Nothing is asked of it."""


class _KernelFormat(CompileResultCacheImpl):
    """numba's format, without the path of the source that kernels were made at."""

    _locator_classes = [  # noqa: RUF012
        *(
            _InTheHome if each is UserWideCacheLocator else each
            for each in CompileResultCacheImpl._locator_classes
        ),
        _BesideTheSource,
    ]

    def reduce(self, compiled: Any) -> Any:
        library, *described, _text, is_reloaded, environments = super().reduce(compiled)  # type: ignore[no-untyped-call]
        return library, *described, "", is_reloaded, environments


class _KernelCache(FunctionCache):
    """numba's cache of a function, under the stamp of all that the function is made of."""

    _impl_class = _KernelFormat

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        path = function.__code__.co_filename
        beside = _BesideTheSource(function, path).get_cache_path()  # type: ignore[no-untyped-call]
        stamp = _stamp(function.__module__, path)
        self._cache_file = _KernelFiles(self._cache_path, beside, self._impl.filename_base, stamp)

    def load_overload(self, sig: object, target_context: Any) -> Any:
        """What is kept; None where it cannot be read, as where there is none: it is compiled."""
        with suppress(Exception):  # of the disk, or of what half a file makes of pickle and LLVM
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: object, data: object) -> None:
        """Keep it. Where that cannot be done, this process alone has what it has compiled."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError:
            if _must_keep.is_set():
                raise


class _KernelFiles(IndexDataCacheFile):
    """The kernels of a function that this user keeps, and those that stand beside its source."""

    def __init__(self, kept: str, beside: str, name: str, stamp: str) -> None:
        super().__init__(kept, name, stamp)  # type: ignore[no-untyped-call]
        # numba writes the index first, and numbers the files of each source from 1 on: an index of
        # a new source, by a process that is killed then, would name a kernel of an older one
        made_of = sha256(f"{stamp} {numba.__version__}".encode()).hexdigest()[:16]
        self._older = f"{escape(name)}.*.nbc"
        self._own = f"{name}.{made_of}."
        self._data_name_pattern = f"{self._own}{{number:d}}.nbc"
        self._beside = None
        if beside != kept and not os.environ.get("NUMBA_CACHE_DIR"):
            self._beside = IndexDataCacheFile(beside, name, stamp)  # type: ignore[no-untyped-call]

    def load(self, key: object) -> Any:
        found = super().load(key)  # type: ignore[no-untyped-call]
        if found is None and self._beside is not None:
            found = self._beside.load(key)  # type: ignore[no-untyped-call]
        return found

    def save(self, key: object, data: object) -> None:
        try:
            super().save(key, data)  # type: ignore[no-untyped-call]
        except OSError:
            raise
        except Exception:  # half an index is there, which is read first
            os.unlink(self._index_path)
            super().save(key, data)  # type: ignore[no-untyped-call]
        for file in Path(self._cache_path).glob(self._older):
            if not file.name.startswith(self._own):
                file.unlink(missing_ok=True)


_must_keep = Event()


def require_keeping() -> None:
    """Let a kernel that cannot be kept raise OSError: for who compiles for later processes."""
    _must_keep.set()


@cache
def _stamp(module: str, path: str) -> str:
    """A digest of a module's source and of what it imports from beside it, at whatever remove."""
    file = Path(path)
    root = file.parents[module.count(".")]
    found: set[str] = set()
    left = [str(file.relative_to(root))]
    while left:
        name = left.pop()
        if name not in found and _source(root, name) is not None:
            found.add(name)
            left += _imports(root, name)
    digest = sha256()
    for name in sorted(found):
        digest.update(sha256((_source(root, name) or "").encode()).digest())
    return digest.hexdigest()


@cache
def _source(root: Path, name: str) -> str | None:
    """Return the source of a file below a directory; None if there is none."""
    file = root / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


@cache
def _imports(root: Path, name: str) -> tuple[str, ...]:
    """The files that the imports of a file may mean."""
    modules = []
    for module, names in _IMPORT.findall(_source(root, name) or ""):
        modules += [module, *(f"{module}.{name}" for name in _NAME.findall(names))]
    return tuple(f"{module.replace('.', os.sep)}.py" for module in dict.fromkeys(modules))
