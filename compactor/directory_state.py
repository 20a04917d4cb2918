"""What a directory is, by the marks in it, and what may be done there. Every command asks here.

| mark | the directory is | change it | copy it, compare with it | read it |
|---|---|---|---|---|
| none | a log directory, or a finished copy that is as good as one | yes | yes | yes |
| `UNFINISHED` | a copy that a run makes now, or that was cut short | no | no | yes |
| `NO_BROKER` | a finished copy with hard links, or without some logs | no | yes | yes |

Files of the second and third may be those of the original, by hard links: what is cut or written in
place in one is cut in the other. Of the second, nobody knows which logs are whole.

A broker looks at no file of a name that it does not know. A directory that is not named like a
partition ends a broker that starts (log-format F-1.4): here that is wanted.
"""

import enum
import os

from compactor.errors import RefusedError
from compactor.reason_codes import ReasonCode
from storage.files import filesystem

MANIFEST = "compactor-copy.json"
UNFINISHED = "compactor-unfinished-copy"  # a directory, until the copy is whole
NO_BROKER = "compactor-no-broker"  # a directory, in a copy that a broker must not work on


class DirectoryState(enum.Enum):
    """What a directory is; which run made a copy is in its manifest."""

    LOG_DIR = enum.auto()
    UNFINISHED_COPY = enum.auto()
    COPY_TO_KEEP = enum.auto()


def directory_state(path: str) -> DirectoryState:
    """Look for the marks. An unfinished copy may have the other one already."""
    if filesystem.exists(os.path.join(path, UNFINISHED)):
        return DirectoryState.UNFINISHED_COPY
    if filesystem.exists(os.path.join(path, NO_BROKER)):
        return DirectoryState.COPY_TO_KEEP
    return DirectoryState.LOG_DIR


def require_whole(path: str) -> None:
    """Raise RefusedError for a directory that nobody may copy, or compare another one with."""
    if directory_state(path) is DirectoryState.UNFINISHED_COPY:
        raise RefusedError(
            f"{path}: is a copy that was never finished ({UNFINISHED} is in it): a run makes it "
            "now, was killed, or failed. Its files may be those of the original, and logs may be "
            "missing. Use the original, or make another copy. Nothing was changed",
            ReasonCode.OUTPUT_IN_USE,
        )


def require_may_change(path: str) -> None:
    """Raise RefusedError for a directory in which no log, checkpoint or mark may be changed."""
    require_whole(path)
    if directory_state(path) is DirectoryState.COPY_TO_KEEP:
        raise RefusedError(
            f"{os.path.join(path, NO_BROKER)}: this is a copy that nobody is to change: its files "
            "may be those of the original (run --output --link), or logs are not in it; its "
            "manifest says which. Make another copy to work on. Nothing was changed",
            ReasonCode.COPY_TO_KEEP,
        )
