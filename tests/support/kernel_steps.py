"""Kernels taken apart: so that a test can come between the steps of one."""

from collections.abc import Callable
from typing import Any


def uncompiled(kernel: Any) -> Callable[..., Any]:
    """The Python function of a kernel. The kernels that it calls are those of its module, compiled,
    or what a test has put in their place.
    """
    function: Callable[..., Any] = kernel.py_func
    return function
