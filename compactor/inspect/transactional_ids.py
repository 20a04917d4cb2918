"""Whose producer ids are: what `__transaction_state` says, as far as it stands here."""

import os
from collections.abc import Collection, Iterator, Sequence

from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.formats.coordinator_records import TRANSACTION_STATE, decode_key, decode_value
from storage.formats.legacy_messages import decode_records
from storage.log import segment_reader
from storage.log.log_dir import PartitionListing

MOST_BYTES = 256 << 20  # read of each log, the newest segments first


def transactional_ids(logs: Sequence[PartitionListing], wanted: Collection[int]) -> dict[int, str]:
    """The transactional ids of producer ids. logs: partitions of `__transaction_state`, or others,
    which are passed over. What cannot be read is passed over, too: nothing depends on it."""
    found: dict[int, str] = {}
    for log in logs:
        left = MOST_BYTES
        for segment in reversed(log.segments if log.topic == TRANSACTION_STATE else ()):
            left -= segment.log_bytes
            if left < 0 or len(found) == len(wanted):
                break
            path = os.path.join(log.path, file_name(segment.base_offset, LOG))
            try:
                of_segment = dict(_producers_in(path, log))
            except (CorruptFileError, OSError):
                continue
            found = {p: of_segment[p] for p in of_segment if p in wanted} | found
    return found


def _producers_in(path: str, log: PartitionListing) -> Iterator[tuple[int, str]]:
    for position, header, batch in segment_reader.read_batches(path, files=log.access):
        for record in decode_records(batch, header, path, position):
            if header.is_control or record.key is None or record.value is None:
                continue
            key = decode_key(TRANSACTION_STATE, record.key)
            value = decode_value(TRANSACTION_STATE, record.key, record.value)
            if key.fields is not None and value.fields is not None:
                yield value.fields["producerId"], key.fields["transactionalId"]
