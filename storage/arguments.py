"""Checks what callers of the public functions hand in, before anything is done with it."""

import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from storage.errors import UsageError, shown

T = TypeVar("T")
PathArg = str | os.PathLike[str]
Paths = PathArg | Iterable[PathArg]  # one, or several
_BYTES = bytes | bytearray | memoryview


def path_of(name: str, value: object) -> str:
    """Return a path as text."""
    text = unfolded(value)
    if not isinstance(text, str):
        raise _unfit(name, value, "a path, as text or path-like")
    if not text:
        raise UsageError("is empty", name)
    if not is_text(text):
        raise _unfit(name, value, "a path without a NUL that can be encoded")
    return str(text)


def paths_of(name: str, value: Any) -> list[str]:
    """Return one path, or several, as texts; at least one."""
    if isinstance(value, str | os.PathLike):
        return [path_of(name, value)]
    expected = "a path, or a list of paths"
    if isinstance(value, Mapping | _BYTES) or not isinstance(value, Iterable):
        raise _unfit(name, value, expected)
    try:
        several = list(value)
    except TypeError:  # an array of no dimension says that it has items
        raise _unfit(name, value, expected) from None
    if not several:
        raise _unfit(name, value, expected)
    return [path_of(f"{name}[{number}]", each) for number, each in enumerate(several)]


def require_a(kind: type[T], name: str, value: object, words: str) -> T:
    """Return a value of a class. words: what was expected."""
    if not isinstance(value, kind):
        raise _unfit(name, value, words)
    return value


def count_of(name: str, value: object, least: int, most: int) -> int:
    """Return an integer between bounds, both of which are allowed."""
    expected = f"an integer from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise _unfit(name, value, expected)
    number = int(value)
    if not least <= number <= most:
        raise _unfit(name, value, expected)
    return number


def unfolded(value: Any) -> Any:
    """Return the text of what is path-like; anything else as it is."""
    try:
        return os.fspath(value) if isinstance(value, os.PathLike) else value
    except Exception:
        return value  # a class of paths, and no path


def is_text(text: str) -> bool:
    """Say whether a file name can hold a text."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _unfit(name: str, value: object, expected: str) -> UsageError:
    kind = type(value).__name__
    return UsageError(f"expected {expected}, not {shown(value)} ({kind})", name)
