"""The names in directories that one part of a program has to itself for a while."""

from collections.abc import Iterable


class KnownNames:
    """What stands in a directory by a listing and by the changes since; for any number of them.

    Whoever asks for a directory to be known is the only one to change it until it is forgotten, and
    notes every change. Threads may each have directories of their own. A path that is written in
    another way than the directory's is of none.
    """

    def __init__(self) -> None:
        self._names: dict[str, tuple[list[str], set[str]]] = {}  # directories, others

    def know(self, directory: str, listed: tuple[Iterable[str], Iterable[str]]) -> None:
        directories, others = listed
        self._names[directory] = list(directories), set(others)

    def forget(self, directory: str) -> None:
        self._names.pop(directory, None)

    def listed(self, directory: str) -> tuple[list[str], list[str]] | None:
        """As Files.list_names gives it; None: not known."""
        known = self._names.get(directory)
        return None if known is None else (list(known[0]), list(known[1]))

    def has(self, path: str) -> bool | None:
        """Whether there is such a name; None: not known."""
        if not self._names:
            return None
        directory, _, name = path.rpartition("/")
        known = self._names.get(directory)
        return None if known is None else name in known[1] or name in known[0]

    def added(self, path: str) -> None:
        """There is a file of that name now, or there was."""
        if self._names:
            directory, _, name = path.rpartition("/")
            if directory in self._names:
                self._names[directory][1].add(name)

    def gone(self, path: str) -> None:
        """There is no file of that name any more."""
        if self._names:
            directory, _, name = path.rpartition("/")
            if directory in self._names:
                self._names[directory][1].discard(name)
