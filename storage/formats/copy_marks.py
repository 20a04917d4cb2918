"""What a directory is, by the marks in it, and whether anything may be changed there.

| mark | the directory is | change it | copy it, compare with it | read it |
|---|---|---|---|---|
| none | a log directory, or a finished copy that is as good as one | yes | yes | yes |
| `UNFINISHED` | a copy that a run makes now, or that was cut short | no | no | yes |
| `NO_BROKER`, or a manifest that says why no broker may start | a finished copy with hard links, or without some logs | no | yes | yes |

A file of the name of a mark counts as the mark, though it keeps no broker away.

Of an unfinished copy, nobody knows which logs are whole. Files of both may be those of the
original, by hard links: a broker that works in one changes the other.

A broker looks at no file of a name that it does not know. A directory that is not named like a
partition ends a broker that starts (log-format F-1.4): here that is wanted. A mark is such a
directory. It holds a text that says so, and since it is not empty, tools that
leave empty directories out (rclone, object stores, git) take it along.
"""  # noqa: E501

import enum
import json
import os
from typing import Any

from storage.errors import CorruptFileError, LogCompactionError, UnsupportedFormatError
from storage.files.files import Files

MANIFEST = "compactor-copy.json"
FORMAT, VERSION = "compactor-copy", 1  # of a manifest
UNFINISHED = "compactor-unfinished-copy"  # a directory, until the copy is whole
NO_BROKER = "compactor-no-broker"  # a directory, in a copy that a broker must not work on
TEXT_FILE = "README.txt"  # in each of them
_TEXTS = {
    UNFINISHED: "A copy of a Kafka log directory is being made here, by a run with --output,\n"
    "or was cut short. Logs may be missing or half written, and files may be hard links to\n"
    "those of the original. This directory keeps brokers from starting here.\n",
    NO_BROKER: "This is a copy of a Kafka log directory to look at: its files may be hard links\n"
    "to those of the original, or logs are not in it. compactor-copy.json says which. This\n"
    "directory keeps brokers from starting here. Make another copy for a broker.\n",
}


class DirectoryState(enum.Enum):
    """The state of a log directory; which run made a copy is in its manifest."""

    LOG_DIR = enum.auto()
    UNFINISHED_COPY = enum.auto()
    COPY_TO_KEEP = enum.auto()


class CopyMarkedError(LogCompactionError):
    """A directory is a copy in which nothing may be changed. Nothing was changed."""

    reason_code = "copy-to-keep"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)  # both, so that it can be pickled
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}. Nothing was changed"


class UnfinishedCopyError(CopyMarkedError):
    """A copy that is not finished; nobody may copy it, either, or compare another one with it."""

    reason_code = "output-in-use"


def set_mark(path: str, mark: str, files: Files) -> None:
    """Leave a mark in a directory. It is on disk when this returns."""
    own = os.path.join(path, mark)
    files.make_directory(own)
    files.replace_file(os.path.join(own, TEXT_FILE), _TEXTS[mark].encode("ascii"))


def take_mark(path: str, mark: str, files: Files) -> None:
    """Remove the mark. Cut short, it stays, perhaps without its text."""
    own = os.path.join(path, mark)
    text = os.path.join(own, TEXT_FILE)
    if files.exists(text):
        files.remove(text)
    files.remove_directory(own)
    files.sync_directory(path)


def directory_state(path: str, files: Files) -> DirectoryState:
    """Look for the marks. An unfinished copy may have the other one already."""
    found = why_not_to_change(path, files)
    if found is None:
        return DirectoryState.LOG_DIR
    is_unfinished = isinstance(found, UnfinishedCopyError)
    return DirectoryState.UNFINISHED_COPY if is_unfinished else DirectoryState.COPY_TO_KEEP


def require_whole(path: str, files: Files) -> None:
    """Raise UnfinishedCopyError for a directory that nobody may copy, or compare with."""
    found = why_not_to_change(path, files)
    if isinstance(found, UnfinishedCopyError):
        raise found


def require_may_change(path: str, files: Files) -> None:
    """Raise CopyMarkedError for a directory in which no log, checkpoint or mark may be changed."""
    found = why_not_to_change(path, files)
    if found is not None:
        raise found


def why_not_to_change(path: str, files: Files) -> CopyMarkedError | None:
    """Say why nothing may be changed in a directory, by the mark that says so; None: it may."""
    mark, why = os.path.join(path, UNFINISHED), ""
    if files.exists(mark):
        return UnfinishedCopyError(
            mark,
            "this is a copy that was never finished: a run makes it now, was killed, or failed. "
            "Its files may be those of the original, and logs may be missing. Use the original, "
            "or make another copy",
        )
    mark = os.path.join(path, NO_BROKER)
    if not files.exists(mark):
        said = _why_not(path, files)
        if said is None:
            return None
        mark, why = os.path.join(path, MANIFEST), f" ({said})"
    return CopyMarkedError(
        mark,
        f"this is a copy that nobody is to change{why}: its files may be those of the original "
        "(run --output --link), or logs are not in it; its manifest says which. Make another copy "
        "to work on",
    )


def manifest_fields(path: str, files: Files) -> dict[str, Any]:
    """Read what the manifest of a copy says.

    Raise FileNotFoundError where there is none, CorruptFileError and UnsupportedFormatError for one
    that was not written by this program.
    """
    manifest = os.path.join(path, MANIFEST)
    try:
        fields = json.loads(files.read_bytes(manifest))
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(manifest, 0, f"not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise CorruptFileError(manifest, 0, f"not a {FORMAT} file")
    if fields.get("schema_version") != VERSION:
        problem = f"version {json.dumps(fields.get('schema_version'))}, expected {VERSION}"
        raise UnsupportedFormatError(manifest, 0, problem)
    return fields


def _why_not(path: str, files: Files) -> str | None:
    """Return why no broker may start on a copy, by its manifest.

    That counts as well without the mark, which may have been lost on the way. A manifest that says
    nothing may have said it.
    """
    manifest = os.path.join(path, MANIFEST)
    if not files.exists(manifest):
        return None
    try:
        fields = json.loads(files.read_bytes(manifest))
        why = fields["why_not"]
    except (OSError, CorruptFileError) as error:
        problem = error.problem if isinstance(error, CorruptFileError) else error.strerror
        return f"the manifest cannot be read: {problem}"
    except (ValueError, RecursionError, KeyError, TypeError):
        return "the manifest is damaged, and does not say whether a broker may start here"
    return None if why is None else str(why)
