"""The batches of the edge cases: three records of one byte each, one, and two."""

from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch


def batch(base_offset: int, *times: int, epoch: int = 0) -> bytes:
    """One v2 batch with a record for each time; one record of it has 70 bytes."""
    records = [Record(base_offset + i, time, b"k", b"v") for i, time in enumerate(times)]
    return encode_batch(records, options=BatchOptions(partition_leader_epoch=epoch))


# offsets 0-2 in 88 bytes, 3 in 70 bytes, 4-5 in 79 bytes
EDGE_BATCHES = (batch(0, 10, 20, 30), batch(3, 40), batch(4, 35, 36))
