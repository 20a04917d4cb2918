"""Offset checkpoints of a log directory: each parses, and each log and offset in it may be."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from compactor.log_dirs.missing_logs import may_be_log
from compactor.verification.verify_batches import Finding, finding_of
from storage.errors import CorruptFileError, shown
from storage.files.files import Files
from storage.formats import checkpoint


class _Consequence(NamedTuple):
    """What follows of an entry of a checkpoint that no log can have."""

    past_end: str
    negative: str


CHECKPOINTS = {
    checkpoint.CLEANER_OFFSET: _Consequence(
        "the next cleaning starts again from the log start offset",
        "the next cleaning starts again from the log start offset",
    ),
    checkpoint.RECOVERY_POINT: _Consequence(
        "a broker would not check the end of the log",
        "a broker checks the whole log after an unclean shutdown",
    ),
    checkpoint.REPLICATION: _Consequence(
        "a broker would cut the high watermark to the log end offset",
        "a broker would raise the high watermark to the log start offset",
    ),
    checkpoint.LOG_START: _Consequence(
        "a broker that starts here deletes every segment",
        "a broker goes by the first segment",
    ),
}


def check_checkpoints(
    log_dir: str, end_offsets: dict[tuple[str, int], int], others_too: bool, files: Files
) -> Iterator[Finding]:
    """Each parses, names only logs that can be, and no offset is past the end of its log."""
    for name, consequence in CHECKPOINTS.items():
        path = os.path.join(log_dir, name)
        try:
            entries = checkpoint.read(path, files)
        except CorruptFileError as error:
            if others_too:
                yield finding_of(error)
            continue
        except OSError as error:
            if others_too:
                yield finding_of(error, path)
            continue
        for (topic, partition), offset in entries.items():
            if not may_be_log((topic, partition)):
                if others_too:
                    named = shown(f"{topic}-{partition}")
                    yield Finding(path, 0, f"no log can have the name {named}")
                continue
            end_offset = end_offsets.get((topic, partition))
            if offset < 0 or (end_offset is not None and offset > end_offset):
                problem = f"{topic}-{partition} has offset {offset}, its log ends at {end_offset}"
                follows = consequence.negative if offset < 0 else consequence.past_end
                yield Finding(path, 0, f"{problem}: {follows}")
