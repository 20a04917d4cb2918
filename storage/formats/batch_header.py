"""The header of a record batch of message format v2: every position, size and attribute bit.

| at | bytes | field | |
|---|---|---|---|
| 0 | 8 | base offset | |
| 8 | 4 | length | of all that follows this field |
| 12 | 4 | partition leader epoch | |
| 16 | 1 | magic | 2 |
| 17 | 4 | checksum | CRC-32C of all that follows this field |
| 21 | 2 | attributes | bits below |
| 23 | 4 | last offset delta | |
| 27 | 8 | base timestamp | ms; the delete horizon if DELETE_HORIZON is set |
| 35 | 8 | max timestamp | ms |
| 43 | 8 | producer id | |
| 51 | 2 | producer epoch | |
| 53 | 4 | base sequence | |
| 57 | 4 | records count | |

Big-endian, signed but for the checksum; the records follow at 61. The first 17 bytes have the same
layout in entries of format v0 and v1, with a CRC-32 in the place of the leader epoch, and their
attributes, one byte, at 17. Kernels freeze these constants. Source: Kafka, DefaultRecordBatch,
Records, LegacyRecord; log-format F-3.1, F-4.1 to F-4.3, F-8.
"""

from typing import Any

BASE_OFFSET_AT, BASE_OFFSET_BYTES = 0, 8
LENGTH_AT, LENGTH_BYTES = 8, 4
LEADER_EPOCH_AT, LEADER_EPOCH_BYTES = 12, 4
MAGIC_AT, MAGIC_BYTES = 16, 1
CRC_AT, CRC_BYTES = 17, 4
ATTRIBUTES_AT, ATTRIBUTES_BYTES = 21, 2
LAST_OFFSET_DELTA_AT, LAST_OFFSET_DELTA_BYTES = 23, 4
BASE_TIMESTAMP_AT, BASE_TIMESTAMP_BYTES = 27, 8
MAX_TIMESTAMP_AT, MAX_TIMESTAMP_BYTES = 35, 8
PRODUCER_ID_AT, PRODUCER_ID_BYTES = 43, 8
PRODUCER_EPOCH_AT, PRODUCER_EPOCH_BYTES = 51, 2
BASE_SEQUENCE_AT, BASE_SEQUENCE_BYTES = 53, 4
RECORDS_COUNT_AT, RECORDS_COUNT_BYTES = 57, 4
BATCH_HEADER_BYTES = 61

assert BASE_OFFSET_AT + BASE_OFFSET_BYTES == LENGTH_AT
assert LENGTH_AT + LENGTH_BYTES == LEADER_EPOCH_AT
assert LEADER_EPOCH_AT + LEADER_EPOCH_BYTES == MAGIC_AT
assert MAGIC_AT + MAGIC_BYTES == CRC_AT
assert CRC_AT + CRC_BYTES == ATTRIBUTES_AT
assert ATTRIBUTES_AT + ATTRIBUTES_BYTES == LAST_OFFSET_DELTA_AT
assert LAST_OFFSET_DELTA_AT + LAST_OFFSET_DELTA_BYTES == BASE_TIMESTAMP_AT
assert BASE_TIMESTAMP_AT + BASE_TIMESTAMP_BYTES == MAX_TIMESTAMP_AT
assert MAX_TIMESTAMP_AT + MAX_TIMESTAMP_BYTES == PRODUCER_ID_AT
assert PRODUCER_ID_AT + PRODUCER_ID_BYTES == PRODUCER_EPOCH_AT
assert PRODUCER_EPOCH_AT + PRODUCER_EPOCH_BYTES == BASE_SEQUENCE_AT
assert BASE_SEQUENCE_AT + BASE_SEQUENCE_BYTES == RECORDS_COUNT_AT
assert RECORDS_COUNT_AT + RECORDS_COUNT_BYTES == BATCH_HEADER_BYTES

LOG_OVERHEAD_BYTES = LENGTH_AT + LENGTH_BYTES  # base offset and length, which a length leaves out
FRAME_BYTES = MAGIC_AT + MAGIC_BYTES  # what an entry of any format begins with
CHECKED_AT = CRC_AT + CRC_BYTES  # the first byte under the checksum
MIN_BATCH_LENGTH = BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES

LEGACY_CRC_AT = LOG_OVERHEAD_BYTES  # of a message of format v0 or v1
LEGACY_ATTRIBUTES_AT = FRAME_BYTES
LEGACY_TIMESTAMP_AT = LEGACY_ATTRIBUTES_AT + 1  # of format v1 alone
MIN_LEGACY_LENGTH = 14  # of a message without timestamp, key and value

MAGIC = 2
NO_TIMESTAMP = NO_PRODUCER_ID = NO_PRODUCER_EPOCH = NO_SEQUENCE = NO_LEADER_EPOCH = -1
MAX_LAST_OFFSET = 2**63 - 2  # the log's next offset has to fit 64 bits, too

# attribute bits (F-4.3); what a rebuilt batch keeps of them, cleaner_jobs.kernels.rebuild names
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


def entry_bytes(data: Any, at: int = 0) -> int:
    """The size of the entry at `at` of a buffer of bytes, which holds its length; of any format."""
    length = bytes(data[at + LENGTH_AT : at + LOG_OVERHEAD_BYTES])
    return int.from_bytes(length, "big") + LOG_OVERHEAD_BYTES
