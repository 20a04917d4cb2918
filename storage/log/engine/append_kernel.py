"""The kernel of the append that is made nearly always.

Layout: log-format F-4; rules: engine L-13.
"""

from typing import Any

import numpy as np

from storage.formats.batch_columns import ByteArray
from storage.formats.batch_header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_BYTES,
    CHECKED_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from storage.kernels.crc32c_kernel import crc32c_between
from storage.kernels.kernel import kernel
from storage.kernels.memory_access import (
    load_be_int16,
    load_be_int32,
    load_be_int64,
    store_be_int32,
    store_be_int64,
)
from storage.log.engine.plain_records import read_record

NOT_PLAIN = 0


@kernel
def give_plain_offsets(
    buffer: ByteArray,
    size: int,
    first_offset: int,
    leader_epoch: int,
    earliest_ms: int,
    latest_ms: int,
    needs_keys: bool,
) -> tuple[int, int]:
    """Give the batch in buffer[:size] its first offset and its leader epoch, if it is plain: of a
    client without a producer id, uncompressed, with records that the log takes as they are.

    buffer has batch_columns.SLACK_BYTES readable behind the batch. A record's time is from
    earliest_ms to latest_ms, both inclusive.
    Returns the number of records, and the largest time; NOT_PLAIN where the batch is not, and then
    nothing is changed.
    """
    if size < BATCH_HEADER_BYTES or load_be_int32(buffer, LENGTH_AT) != size - LOG_OVERHEAD_BYTES:
        return NOT_PLAIN, 0
    count = load_be_int32(buffer, RECORDS_COUNT_AT)
    if (
        load_be_int64(buffer, BASE_OFFSET_AT) != 0
        or load_be_int32(buffer, LEADER_EPOCH_AT) != NO_LEADER_EPOCH
        or buffer[MAGIC_AT] != MAGIC
        or load_be_int16(buffer, ATTRIBUTES_AT) != 0
        or load_be_int64(buffer, PRODUCER_ID_AT) != NO_PRODUCER_ID
        or count <= 0
        or load_be_int32(buffer, LAST_OFFSET_DELTA_AT) != count - 1
    ):
        return NOT_PLAIN, 0
    stored = load_be_int32(buffer, CRC_AT) & np.int64(0xFFFFFFFF)
    if crc32c_between(buffer, CHECKED_AT, size) != stored:
        return NOT_PLAIN, 0
    base_time = load_be_int64(buffer, BASE_TIMESTAMP_AT)
    largest: Any = np.int64(NO_TIMESTAMP)
    at: Any = np.int64(BATCH_HEADER_BYTES)
    for _ in range(count):
        end, time_delta, _, has_key = read_record(buffer, at, size)
        time = base_time + time_delta
        if end > size or time < earliest_ms or time > latest_ms or (needs_keys and not has_key):
            return NOT_PLAIN, 0
        largest = max(largest, time)
        at = end
    if at != size or largest != load_be_int64(buffer, MAX_TIMESTAMP_AT):
        return NOT_PLAIN, 0
    store_be_int64(buffer, BASE_OFFSET_AT, first_offset)
    store_be_int32(buffer, LEADER_EPOCH_AT, leader_epoch)
    return count, largest
