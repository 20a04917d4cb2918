"""The first record that is larger than a topic allows once it is decompressed (V-4)."""

from storage.formats.batch_columns import (
    ATTRIBUTES,
    LEGACY,
    MAGIC_ZERO,
    RECORDS_COUNT,
    TXN_FLAGS,
    UNREAD,
    ByteArray,
    Int64Array,
)
from storage.formats.batch_header import CODEC_MASK, CONTROL
from storage.kernels.kernel import inlined, kernel
from storage.kernels.varint_kernel import read_varint, read_varlong

V0_OVERHEAD_BYTES = 14  # of a message: checksum, magic, attributes, two lengths
V1_OVERHEAD_BYTES = 22  # a timestamp more


@inlined
def _message_bytes(payloads: ByteArray, at: int, attributes: int) -> int:
    """Give the size of the message of v0 or v1 that an upgraded record was made of."""
    _, at = read_varlong(payloads, at + 1)  # behind the attributes: the timestamp
    _, at = read_varint(payloads, at)  # the offset
    key_length, at = read_varint(payloads, at)
    key_length = max(key_length, 0)
    value_length, _ = read_varint(payloads, at + key_length)
    overhead = V0_OVERHEAD_BYTES if attributes & MAGIC_ZERO != 0 else V1_OVERHEAD_BYTES
    return int(overhead + key_length + max(value_length, 0))


@kernel
def first_above(
    payloads: ByteArray, bounds: Int64Array, rows: Int64Array, limit: int
) -> tuple[int, int, int]:
    """Return batch, number and size of the first record that is above the limit; (-1, 0, 0): none.

    payloads, bounds, rows: as of `parse_records`, which has found nothing wrong. Records of batches
    that are not compressed have no limit, nor those that nobody reads (C-10.3).
    """
    for i in range(rows.shape[0]):
        attributes = rows[i, ATTRIBUTES]
        is_unread = rows[i, TXN_FLAGS] & UNREAD == UNREAD and attributes & CONTROL == 0
        if attributes & CODEC_MASK == 0 or is_unread:
            continue
        at = bounds[i, 0]
        for j in range(rows[i, RECORDS_COUNT]):
            length, at = read_varint(payloads, at)
            size = length
            if attributes & LEGACY != 0:
                size = _message_bytes(payloads, at, attributes)
            if size > limit:
                return i, j, size
            at += length
    return -1, 0, 0
