"""Producer snapshots of segments that are deleted. Source: Kafka, UnifiedLog; spec L-14.10."""

from collections.abc import Iterable

from storage.log.local_log import LocalLog
from storage.log.moves import remove_if_there
from storage.log.producer_state_manager import ProducerStateManager
from storage.log.segment import LogSegment


def delete_snapshots(
    local: LocalLog, producers: ProducerStateManager, segments: Iterable[LogSegment]
) -> None:
    """Rename the snapshots at the bases of segments now, and remove them with the segments."""
    found = [producers.mark_snapshot_deleted(segment.base_offset) for segment in segments]
    paths = [path for path in found if path is not None]

    def delete() -> None:
        for path in paths:
            remove_if_there(local.files, path)

    if paths:
        local.schedule_deletion("deleting producer snapshots", delete)
