"""A partition directory that somebody exchanges for another while a run is at work on it."""

import os
import shutil
from pathlib import Path


class Exchange:
    """To be called when it happens.

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
