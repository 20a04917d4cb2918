"""Something that happens in the middle of a run, as that a partition directory is exchanged.

It comes before an operation on files, or before a call.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage.files.local import LOCAL
from tests.support.files.watched import Operation, WatchedDisk


class Exchange:
    """Exchanges a partition directory for another when it is called.

    Elsewhere is then a directory whose files are hard links to those of the partition: names,
    sizes, times and inodes are the same, so that by its files nobody can tell it from the other.
    """

    def __init__(self, partition: Path, for_a_link: bool = True) -> None:
        outside = partition.parent.parent / "outside"
        self.partition, self.moved = partition, outside / "moved"
        self.elsewhere = outside / "elsewhere" if for_a_link else partition
        self.for_a_link, self.happened = for_a_link, False
        self._before: set[str] = set()

    def __call__(self) -> None:
        """Only the first call counts."""
        if self.happened:
            return
        self.happened = True
        self.moved.parent.mkdir()
        self.partition.rename(self.moved)
        shutil.copytree(self.moved, self.elsewhere, copy_function=os.link)
        if self.for_a_link:
            self.partition.symlink_to(self.elsewhere)
        self._before = set(os.listdir(self.elsewhere))

    def is_untouched(self) -> bool:
        """Whether the names in the other directory are those that it came with."""
        assert self.happened
        return set(os.listdir(self.elsewhere)) == self._before


When = Callable[..., bool]


def always(*_: object) -> bool:
    return True


def before_operation(happens: Callable[[], None], name: str, when: When = always) -> WatchedDisk:
    """Return files with which it happens before an operation with paths that `when` says yes to."""

    def before(operation: Operation) -> None:
        if operation.name == name and when(*operation.paths):
            happens()

    return WatchedDisk(LOCAL, before)


def before_call(
    happens: Callable[[], None],
    patch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    when: When = always,
) -> None:
    """Let it happen before calls of a module's function with arguments that `when` says yes to."""
    original = getattr(module, name)

    def call(*arguments: Any, **named: Any) -> Any:
        if when(*arguments):
            happens()
        return original(*arguments, **named)

    patch.setattr(module, name, call)
