"""How kernels are compiled: plain loops over arrays, no Python object, cached between processes.

A kernel raises nothing: it answers with a code and a place. What it is called with is not checked.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile at the first call with types not met before, or load what an earlier process made."""
    return cast(Function, njit(cache=True)(function))


def inlined(function: Function) -> Function:
    """As part of the kernels that call it."""
    return cast(Function, njit(inline="always")(function))
