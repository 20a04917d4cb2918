"""Decompresses the payloads of framed batches, many in one call of a kernel."""

from typing import Any

import numpy as np
import numpy.typing as npt

from storage.codecs.payload_kernels import decompress_payload
from storage.formats.batch_columns import ATTRIBUTES, POSITION, SIZE, ByteArray, Int64Array
from storage.formats.batch_header import BATCH_HEADER_BYTES, CODEC_MASK
from storage.kernels.kernel import kernel
from storage.kernels.xxh3_kernel import digest_between

UInt64Array = npt.NDArray[np.uint64]


@kernel
def decompress_batches(
    batches: tuple[ByteArray, int, Int64Array, npt.NDArray[np.bool_]],
    progress: tuple[int, int],
    out: tuple[ByteArray, int],
    found: tuple[Int64Array, UInt64Array],
    tools: Any,
) -> tuple[int, int]:
    """Decompress batches of v2, one behind the other, until one is not taken by the kernels.

    batches: a buffer, where its first byte stands in the file, rows of the batches, and which are
    read: the others come to nothing. progress: how many are done already, and the end of what they
    were decompressed to. out: a buffer, and how much of it there is room in. found: filled in for
    each, its bounds in out, and a digest of that, unless no digests are asked for (an empty array).
    tools: as of payload_kernels. Returns progress as it is then.
    """
    buffer, file_position, rows, is_read = batches
    done, at = progress
    target, limit = out
    bounds, digests = found
    while done < rows.shape[0]:
        end: Any = np.int64(at)
        if is_read[done]:
            start = rows[done, POSITION] - file_position
            span = (start + BATCH_HEADER_BYTES, start + rows[done, SIZE])
            codec = rows[done, ATTRIBUTES] & CODEC_MASK
            end = np.int64(
                decompress_payload(codec, buffer, span, target, (np.int64(at), limit), tools)
            )
            if end < 0:
                break
        bounds[done, 0] = at
        bounds[done, 1] = end
        if digests.shape[0] > 0:
            digests[done] = digest_between(target, at, end)
        at = end
        done += 1
    return done, at
