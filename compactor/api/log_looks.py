"""`log offsets`: where one log begins and ends, as a starting broker would find it. No file is
changed, no lock taken.
"""

from collections.abc import Sequence

from compactor.api import path_arguments
from compactor.api.round_context import premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.offline_log.log_location import find_log, known_offsets
from compactor.offline_log.log_offsets import LogOffsets, offsets_of
from compactor.offline_log.open_log import log_settings, view_log
from storage.arguments import PathArg
from storage.files.local import LOCAL


def log_offsets(
    log_dir: PathArg,
    topic_partition: str,
    times_ms: Sequence[int] = (),
    rules: Rules = KAFKAS_DEFAULTS,
) -> LogOffsets:
    """Say where a log begins and ends, how far it is replicated and decided, and which
    transactions are open.

    times_ms: for each, the first record that is not older; -2 and -1 for the first and the next
    offset, -3 for the record with the largest time. Beside a broker the answer is one of a moment.
    Raise UsageError if there is no such log, CorruptFileError where a checkpoint is damaged.
    """
    (path,) = path_arguments.log_dirs([log_dir], to_write=False)
    at = find_log(path, topic_partition, LOCAL)
    premises = premises_of(rules, [path])
    settings = log_settings(at.topic, premises.config, premises.as_of_ms)
    with view_log(at, known_offsets(at, LOCAL), settings, LOCAL) as view:
        return offsets_of(at.name, view, times_ms)
