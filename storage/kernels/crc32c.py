"""CRC-32C (Castagnoli), the checksum of v2 batches and of producer snapshots (F-4.2, F-14.1).

`crc32c(data, crc=0) -> int` of any buffer; pass the result as `crc` to go on with the next piece.
The package's own function, so that the hot path pays for no wrapper.
"""

from crc32c import crc32c

__all__ = ["crc32c"]
