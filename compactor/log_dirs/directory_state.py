"""Say what may be done in a directory that may be a copy. Every command asks this module.

The marks, and what they mean, are `storage.formats.copy_marks`, which an embedded log manager asks.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from compactor.errors import RefusedError
from compactor.json_types import text_in
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import copy_marks
from storage.formats.copy_marks import MANIFEST as MANIFEST
from storage.formats.copy_marks import NO_BROKER as NO_BROKER
from storage.formats.copy_marks import TEXT_FILE as TEXT_FILE
from storage.formats.copy_marks import UNFINISHED as UNFINISHED
from storage.formats.copy_marks import (
    CopyMarkedError,
    DirectoryState,
    UnfinishedCopyError,
    directory_state,
    manifest_fields,
)


class Lacking(NamedTuple):
    """What a log directory that is a copy lacks, by its own manifest."""

    missing: Mapping[str, str] = {}  # logs that should be there -> why they are not
    not_wanted: tuple[str, ...] = ()  # logs that were not asked for


def require_whole(path: str) -> None:
    """Raise RefusedError for an unfinished copy: nobody may copy it, or compare with it."""
    _asked(copy_marks.require_whole, path)


def require_may_change(path: str) -> None:
    """Raise RefusedError for a directory in which no log, checkpoint or mark may be changed."""
    _asked(copy_marks.require_may_change, path)


def is_being_made(path: str, files: Files) -> bool:
    """Say whether a run makes it, or was killed: what a copy lacks is said at its end."""
    return directory_state(path, files) is DirectoryState.UNFINISHED_COPY


def lacking_in(path: str, names: Collection[str], files: Files) -> Lacking:
    """Say what a log directory lacks; nothing unless it is a copy that does.

    names: the logs that it has by now: one that has come since is not lacking.
    Raise RefusedError where a copy lacks something, or may, and its manifest cannot say what;
    OSError where the manifest cannot be read.
    """
    try:
        fields = manifest_fields(path, files)
        missing = {text_in(name): text_in(why) for name, why in fields["missing"].items()}
        not_wanted = tuple(map(text_in, fields["not_wanted"]))
    except FileNotFoundError as error:
        if directory_state(path, files) is not DirectoryState.COPY_TO_KEEP:
            return Lacking()
        raise _unknown(path, "is not there") from error
    except CorruptFileError as error:
        raise _unknown(path, error.problem) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise _unknown(path, f"not what was written there: {error}") from error
    return Lacking(
        {name: why for name, why in missing.items() if name not in names},
        tuple(name for name in not_wanted if name not in names),
    )


def _unknown(path: str, problem: str) -> RefusedError:
    manifest = os.path.join(path, MANIFEST)
    return RefusedError(
        f"{manifest}: {problem}. Nothing else says which logs are missing from this copy",
        ReasonCode.COPY_TO_KEEP,
        path=manifest,
        remedy="Copy the original instead. Nothing was changed",
    )


def _asked(require: Callable[[str, Files], None], path: str) -> None:
    try:
        require(path, LOCAL)  # commands work on this machine's
    except CopyMarkedError as error:
        is_unfinished = isinstance(error, UnfinishedCopyError)
        code = ReasonCode.OUTPUT_IN_USE if is_unfinished else ReasonCode.COPY_TO_KEEP
        raise RefusedError(str(error), code) from error
