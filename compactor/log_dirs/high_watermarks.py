"""Whether a log directory says how far its logs are replicated (F-13.1).

A broker may be a follower with records at the end of a log that no leader has any more: they are
above the high watermark, and neither go nor let others go. Where no file says what that is, only
the operator can know.
"""

import os
from collections.abc import Iterable

from compactor.errors import RefusedError
from compactor.reason_codes import ReasonCode
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import REPLICATION
from storage.log.log_dir import partition_of


def has_high_watermarks(log_dir: str, files: Files = LOCAL) -> bool:
    return files.exists(os.path.join(log_dir, REPLICATION))


def require_high_watermarks(
    log_dirs: Iterable[str], assume_fully_replicated: bool, files: Files = LOCAL
) -> None:
    """Raise RefusedError where a run would have to take the end of a log, and nobody says so."""
    for path in () if assume_fully_replicated else log_dirs:
        if has_high_watermarks(path, files):
            continue
        directories, others = files.list_names(path)
        if any(map(partition_of, (*directories, *others))):
            raise RefusedError(
                f"{path}: no {REPLICATION}, where a broker notes how far each log is replicated. "
                "Records that are not replicated could be removed, or cause others to be removed",
                ReasonCode.REPLICATION_UNKNOWN,
                path=os.path.join(path, REPLICATION),
                remedy="If each log here is replicated to its end, say so with "
                "--assume-fully-replicated",
            )
