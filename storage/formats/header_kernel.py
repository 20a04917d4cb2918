"""The kernel that writes the header of a batch that no producer and no leader has had a hand in.

Source: Kafka, DefaultRecordBatch.writeHeader; log-format F-4.1.
"""

from typing import Any

import numpy as np

from storage.formats.batch_columns import ByteArray
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from storage.kernels.kernel import inlined
from storage.kernels.memory_access import store_be_int16, store_be_int32, store_be_int64


@inlined
def write_new_header(
    out: ByteArray, place: Any, attributes: Any, offsets: Any, times: Any, count: Any
) -> None:
    """Write the header of a batch, all but its checksum.

    place: where the batch begins and ends in out. offsets: of its first and last record. times:
    base and max timestamp.
    """
    at, end = place
    store_be_int64(out, at + BASE_OFFSET_AT, offsets[0])
    store_be_int32(out, at + LENGTH_AT, end - at - LOG_OVERHEAD_BYTES)
    store_be_int32(out, at + LEADER_EPOCH_AT, NO_LEADER_EPOCH)
    out[at + MAGIC_AT] = np.uint8(MAGIC)
    store_be_int16(out, at + ATTRIBUTES_AT, attributes)
    store_be_int32(out, at + LAST_OFFSET_DELTA_AT, offsets[1] - offsets[0])
    store_be_int64(out, at + BASE_TIMESTAMP_AT, times[0])
    store_be_int64(out, at + MAX_TIMESTAMP_AT, times[1])
    store_be_int64(out, at + PRODUCER_ID_AT, NO_PRODUCER_ID)
    store_be_int16(out, at + PRODUCER_EPOCH_AT, NO_PRODUCER_EPOCH)
    store_be_int32(out, at + BASE_SEQUENCE_AT, NO_SEQUENCE)
    store_be_int32(out, at + RECORDS_COUNT_AT, count)
