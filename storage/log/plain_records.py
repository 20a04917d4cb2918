"""Records of an uncompressed batch of v2, in kernels. Layout: log-format F-5."""

from typing import Any

import numpy as np

from storage.formats.batch_columns import ByteArray, skip_headers
from storage.kernels.kernel import inlined
from storage.kernels.memory_access import load_byte
from storage.kernels.varint_kernel import read_varint, read_varlong

NO_RECORD = 1 << 60


@inlined
def read_record(buffer: ByteArray, at: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """The record of a batch of v2 that begins there: where it ends, its time and its offset less
    those of the batch, whether it has a key. It ends at NO_RECORD if it is none, or goes beyond
    size.
    """
    none = np.int64(NO_RECORD)
    length, at = read_varint(buffer, at)
    if at > size or length < 0 or length > size - at:
        return none, np.int64(0), np.int64(0), False
    end = at + length
    time_delta, at = read_varlong(buffer, at + 1)
    if at > end:
        return none, np.int64(0), np.int64(0), False
    offset_delta, at = read_varint(buffer, at)
    if at > end:
        return none, np.int64(0), np.int64(0), False
    key_length, at = read_varint(buffer, at)
    if at > end or key_length > end - at:
        return none, np.int64(0), np.int64(0), False
    at += max(np.int64(0), key_length)
    value_length, at = read_varint(buffer, at)
    if at > end or value_length > end - at:
        return none, np.int64(0), np.int64(0), False
    at += max(np.int64(0), value_length)
    if at < end and load_byte(buffer, at) == np.uint64(0):
        at += 1
    else:
        at = skip_headers(buffer, at, end)
    if at != end:
        return none, np.int64(0), np.int64(0), False
    return end, time_delta, offset_delta, key_length >= 0
