"""Shell completion: what a shell may offer for a directory or a log.

click asks by variables of the environment, which its scripts set; it knows commands and options by
itself. Nothing but names of directories is read.
"""

import os
from collections.abc import Iterator, Sequence

from storage.file_names import parse_partition_dir
from storage.files.filesystem import is_directory

VARIABLE = "_COMPACTOR_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def directories(_: Sequence[str], incomplete: str) -> list[str]:
    """Return the directories that begin like that, each with a slash behind it."""
    folder, begin = os.path.split(incomplete)
    return sorted(
        os.path.join(folder, name) + os.sep
        for name in _names(folder or os.curdir)
        if name.startswith(begin) and is_directory(os.path.join(folder, name))
    )


def logs(typed: Sequence[str], incomplete: str) -> list[str]:
    """Return the logs of the directories that stand before."""
    return sorted({name for name in _logs_in(typed) if name.startswith(incomplete)})


def directories_or_logs(typed: Sequence[str], incomplete: str) -> list[str]:
    """Return logs, too, once a log directory stands before."""
    return logs(typed, incomplete) + directories(typed, incomplete)


def directories_or_topics(typed: Sequence[str], incomplete: str) -> list[str]:
    """Return topics, too, once a log directory stands before."""
    keys = map(parse_partition_dir, _logs_in(typed))
    topics = {key[0] for key in keys if key is not None and key[0].startswith(incomplete)}
    return sorted(topics) + directories(typed, incomplete)


def _logs_in(typed: Sequence[str]) -> Iterator[str]:
    for place in filter(is_directory, typed):
        yield from (name for name in _names(place) if parse_partition_dir(name))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
