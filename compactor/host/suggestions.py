"""Suggestions for an unknown name: those that exist and are nearly the same.

Names are compared by letters (difflib); paths by what stands beside and below them.
"""

import os
from collections.abc import Callable, Collection
from itertools import chain

from compactor.host.printable import printable
from storage.files.local import LOCAL

SHOWN = 3
_LOOKED_AT = 2000  # names at most, of a directory


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return `; did you mean …?` with similar known names; "" where none is similar."""
    from difflib import get_close_matches  # only on the way to an error

    return _asked(get_close_matches(name, known, SHOWN))


def near_path(path: str) -> str:
    """Return `; did you mean …?` with the similar names beside a path that does not exist."""
    folder, name = os.path.split(path.rstrip(os.sep))
    from difflib import get_close_matches

    names = _names(folder or os.curdir)
    return _asked([os.path.join(folder, each) for each in get_close_matches(name, names, SHOWN)])


def below(path: str, is_meant: Callable[[str], bool]) -> str:
    """Return `; did you mean …?` with what was meant one level or two below a directory."""
    found: list[str] = []
    level = [path]
    for _ in range(2):
        level = [os.path.join(each, name) for each in level for name in _names(each)][:_LOOKED_AT]
        found += filter(is_meant, level)
    return _asked(found[:SHOWN])


def above(path: str, is_meant: Callable[[str], bool]) -> str:
    """Return `; did you mean …?` with a directory above that was meant."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        if is_meant(folder):
            return _asked([folder])
        folder = os.path.dirname(folder)
    return ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(chain(*LOCAL.list_names(folder)))[:_LOOKED_AT]
    except OSError:  # who gave the path is told about that
        return []


def _asked(names: Collection[str]) -> str:
    shown = " or ".join(printable(name) for name in names)
    return f"; did you mean {shown}?" if shown else ""
