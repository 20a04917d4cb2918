"""Gives batches the checksum of what they hold (F-4.2)."""

from storage.formats.batch_columns import ByteArray, Int64Array
from storage.formats.batch_header import CHECKED_AT, CRC_AT
from storage.kernels.crc32c_kernel import crc32c_between
from storage.kernels.kernel import kernel
from storage.kernels.memory_access import store_be_int32


@kernel
def seal_batches(out: ByteArray, spans: Int64Array) -> None:
    """spans: where each of the batches begins and ends in out."""
    for i in range(spans.shape[0]):
        start, end = spans[i, 0], spans[i, 1]
        store_be_int32(out, start + CRC_AT, crc32c_between(out, start + CHECKED_AT, end))
