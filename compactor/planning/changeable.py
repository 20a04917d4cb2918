"""Whether this user may read what a log's cleaning reads, and replace what it replaces.

Asked of the few logs that a round would take on, before it takes them: else a round finds out when
nearly all is done, and so does the next one. Whoever only plans may be another user than the one
who runs: what is said holds for a run by this user.
"""

import errno
import os
from collections.abc import Iterable

from compactor.host.machine import user_name
from compactor.reason_codes import Reason, ReasonCode
from storage.file_names import SEGMENT_SUFFIXES, SWAP, Segment, file_name
from storage.files.file_attributes import may_give, require_replaceable
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.log_dir import PartitionListing


def why_not_changeable(
    partition: PartitionListing, to_rewrite: Iterable[Segment], is_cut: bool
) -> Reason | None:
    """Say what forbids to clean a log; None if nothing does.

    is_cut: whether retention deletes from its beginning. Files that are not on this machine, or
    gone, are not looked at.
    """
    if os.geteuid() == 0:  # who may do anything, and is told otherwise when it is tried
        return None
    log_dir = os.path.dirname(partition.path)
    if not os.access(log_dir, os.W_OK | os.X_OK):  # no run comes so far
        return None
    if not os.access(partition.path, os.W_OK | os.X_OK) and partition.access.exists(partition.path):
        return _reason(ReasonCode.NO_PERMISSION, partition.path, errno.EACCES)
    for segment in to_rewrite:
        for suffix in SEGMENT_SUFFIXES:
            name = file_name(segment.base_offset, suffix)
            for known_as in (name, name + SWAP):  # of which a run makes it first
                found = _why_not_replaceable(partition, known_as)
                if found is not None:
                    return found
    return _why_epochs_stay(partition) if is_cut else None


def _why_not_replaceable(partition: PartitionListing, name: str) -> Reason | None:
    path = os.path.join(partition.path, name)
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not os.access(path, os.R_OK):
        return _reason(ReasonCode.UNREADABLE, path, errno.EACCES)
    if may_give(found.st_uid, found.st_gid):
        return None
    owner = user_name(found.st_uid)
    text = f"{path}: belongs to {owner}, and this user cannot give {owner} what takes its place"
    return Reason(ReasonCode.NO_PERMISSION, text)


def _why_epochs_stay(partition: PartitionListing) -> Reason | None:
    path = os.path.join(partition.path, LEADER_EPOCH_CHECKPOINT)
    try:
        require_replaceable(path)
    except FileNotFoundError:  # its directory
        return None
    except OSError as error:
        return _reason(ReasonCode.NO_PERMISSION, path, error.errno or errno.EACCES)
    return None


def _reason(code: ReasonCode, path: str, number: int) -> Reason:
    return Reason(code, f"{path}: {os.strerror(number)}")
