"""The positions of the v2 header, held against a batch that Kafka wrote."""

import numpy as np
import pytest

from storage.formats import batch_header as layout
from tests.storage.kafka_batches import EMPTY

# what was told of EMPTY when Kafka wrote it: position, bytes, value
FIELDS = [
    (layout.BASE_OFFSET_AT, layout.BASE_OFFSET_BYTES, 3),
    (layout.LENGTH_AT, layout.LENGTH_BYTES, 49),
    (layout.LEADER_EPOCH_AT, layout.LEADER_EPOCH_BYTES, 293),
    (layout.MAGIC_AT, layout.MAGIC_BYTES, 2),
    (layout.CRC_AT, layout.CRC_BYTES, 0x5160EB4A),
    (layout.ATTRIBUTES_AT, layout.ATTRIBUTES_BYTES, layout.TRANSACTIONAL),
    (layout.LAST_OFFSET_DELTA_AT, layout.LAST_OFFSET_DELTA_BYTES, 1),
    (layout.BASE_TIMESTAMP_AT, layout.BASE_TIMESTAMP_BYTES, -1),
    (layout.MAX_TIMESTAMP_AT, layout.MAX_TIMESTAMP_BYTES, 12),
    (layout.PRODUCER_ID_AT, layout.PRODUCER_ID_BYTES, 23),
    (layout.PRODUCER_EPOCH_AT, layout.PRODUCER_EPOCH_BYTES, 5),
    (layout.BASE_SEQUENCE_AT, layout.BASE_SEQUENCE_BYTES, 10),
    (layout.RECORDS_COUNT_AT, layout.RECORDS_COUNT_BYTES, 0),
]


@pytest.mark.parametrize(("at", "size", "value"), FIELDS)
def test_each_field_stands_where_kafka_puts_it(at: int, size: int, value: int) -> None:
    """F-4.1."""
    assert int.from_bytes(EMPTY[at : at + size], "big", signed=True) == value


def test_the_fields_are_the_whole_header() -> None:
    assert sum(size for _, size, _ in FIELDS) == layout.BATCH_HEADER_BYTES == len(EMPTY)


def test_an_entry_tells_its_size() -> None:
    """F-3.1."""
    assert layout.entry_bytes(EMPTY) == len(EMPTY)
    assert layout.entry_bytes(np.frombuffer(b"12345" + EMPTY, np.uint8), 5) == len(EMPTY)
