"""How kernels are compiled: plain loops over arrays, no Python object, cached between processes.

A kernel raises nothing: it answers with a code and a place. What it is called with is not checked.

numba takes a cached kernel for up to date while its own file is what it was, yet the constants and
functions of other modules are compiled into it: after a change there, kernels of two states of the
source would work on one log. So the cache is checked against all modules that a kernel's imports.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)(?:\s+import\s+(\([^)]*\)|.*))?", re.MULTILINE)
_NAME = re.compile(r"\w+")


def kernel(function: Function) -> Function:
    """Compile at the first call with types not met before, or load what an earlier process made.

    Other threads go on while it runs.
    """
    compiled: Any = njit(cache=True, nogil=True)(function)
    if hasattr(compiled, "_cache"):  # not so where NUMBA_DISABLE_JIT leaves the function as it is
        compiled._cache = _KernelCache(function)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """As part of the kernels that call it: LLVM's way, numba's own takes twice as long."""
    return cast(Function, njit(forceinline=True)(function))


class _KernelCache(FunctionCache):
    """numba's cache of a function, under the stamp of all that the function is made of."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_stamp(function.__module__, function.__code__.co_filename),
        )


@cache
def _stamp(module: str, path: str) -> str:
    """A digest of a module's source and of what it imports from beside it, at whatever remove."""
    file = Path(path)
    root = file.parents[module.count(".")]
    sources: dict[Path, str] = {}
    left = [file]
    while left:
        found = left.pop()
        if found in sources or not found.is_file():
            continue
        sources[found] = found.read_text(encoding="utf-8")
        left += [
            root.joinpath(*name.split(".")).with_suffix(".py") for name in _imports(sources[found])
        ]
    digest = sha256()
    for found in sorted(sources):
        digest.update(sha256(sources[found].encode()).digest())
    return digest.hexdigest()


def _imports(source: str) -> Iterator[str]:
    """The modules that the imports of a source may mean."""
    for module, names in _IMPORT.findall(source):
        yield module
        for name in _NAME.findall(names):
            yield f"{module}.{name}"
