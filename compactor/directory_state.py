"""What may be done in a directory that may be a copy. Every command asks here.

The marks, and what they mean, are `storage.log.copy_marks`, which an embedded log manager asks.
"""

from collections.abc import Callable

from compactor.errors import RefusedError
from compactor.reason_codes import ReasonCode
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.log import copy_marks
from storage.log.copy_marks import MANIFEST as MANIFEST
from storage.log.copy_marks import NO_BROKER as NO_BROKER
from storage.log.copy_marks import TEXT_FILE as TEXT_FILE
from storage.log.copy_marks import UNFINISHED as UNFINISHED
from storage.log.copy_marks import CopyMarkedError, UnfinishedCopyError


def require_whole(path: str) -> None:
    """Raise RefusedError for a directory that nobody may copy, or compare another one with."""
    _asked(copy_marks.require_whole, path)


def require_may_change(path: str) -> None:
    """Raise RefusedError for a directory in which no log, checkpoint or mark may be changed."""
    _asked(copy_marks.require_may_change, path)


def _asked(require: Callable[[str, Files], None], path: str) -> None:
    try:
        require(path, LOCAL)  # commands work on this machine's
    except CopyMarkedError as error:
        is_unfinished = isinstance(error, UnfinishedCopyError)
        code = ReasonCode.OUTPUT_IN_USE if is_unfinished else ReasonCode.COPY_TO_KEEP
        raise RefusedError(str(error), code) from error
