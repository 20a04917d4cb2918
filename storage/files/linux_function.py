"""Functions of the system's C library that Python has no name for."""

import ctypes
import os
from collections.abc import Sequence


def linux_function(name: str, arguments: Sequence[type]) -> "ctypes._NamedFuncPointer | None":
    """None where the system is no Linux, or its library has no such function."""
    if os.uname().sysname != "Linux":
        return None
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function.argtypes = list(arguments)
    return function
