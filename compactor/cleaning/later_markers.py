"""How the transactions end that are open where the segments of a round do."""

import os
from collections.abc import Collection
from typing import NamedTuple

from cleaner_jobs.messages import LogPlan
from storage.file_names import LOG, file_name
from storage.files.local import LOCAL
from storage.formats.control_record import ControlType
from storage.log.log_dir import list_partition
from storage.log.segment_reader import read_batch_headers, read_marker


class Marker(NamedTuple):
    """The end of a transaction."""

    offset: int
    is_abort: bool


def later_markers(plan: LogPlan, producer_ids: Collection[int]) -> dict[int, Marker]:
    """The first marker of each of some producers behind the segments of the round.

    Reads batch headers until each has one: transactions that are open where a round ends are short.
    """
    partition = list_partition(plan.path, plan.topic, plan.partition, LOCAL)  # as tasks read it
    first = max(s.base_offset for group in plan.groups for s in group.segments) + 1
    found: dict[int, Marker] = {}
    for segment in partition.segments:
        if segment.base_offset < first or len(found) == len(producer_ids):
            continue
        log_path = os.path.join(plan.path, file_name(segment.base_offset, LOG))
        for position, header in read_batch_headers(log_path, files=partition.access):
            producer_id = header.producer_id
            if not (header.is_control and header.records_count and producer_id in producer_ids):
                continue
            kind = read_marker(header, log_path, position, partition.access)[0]
            found.setdefault(producer_id, Marker(header.base_offset, kind is ControlType.ABORT))
            if len(found) == len(producer_ids):
                break
    return found
