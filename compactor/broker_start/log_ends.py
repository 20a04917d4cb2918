"""A log that ends before what the checkpoints of its log directory say. Pure.

Source: Kafka, LogManager.shutdown, UnifiedLog.flush; spec F-13.
"""

from collections.abc import Mapping

from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition


def why_cut_short(
    log: TopicPartition, end_offset: int, known: Mapping[str, Mapping[TopicPartition, int]]
) -> str | None:
    """Say that a log ends before what its checkpoints say; None if it does not.

    Only of a log directory that was left in good order: a broker that stops flushes its logs, and
    writes both files then. known: of the names below, where they could be read.
    """
    for of_file in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        offset = known.get(of_file, {}).get(log, 0)
        if offset > end_offset:
            return (
                f"it ends at offset {end_offset}, and {of_file} has {offset} for it: records are "
                "gone from its end. After a clean shutdown a broker does not look for them, and "
                "gives their offsets to new records"
            )
    return None
