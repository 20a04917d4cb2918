"""Batches that are read back are those that were sealed, in number, head and content."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cleaner_jobs.problems import MiswrittenError
from cleaner_jobs.tasks.batch_window import WindowReader, digests_of, payloads
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from cleaner_jobs.tasks.written_batches import ReadBackCheck, WrittenBatches, heads_of
from storage.codecs.compression import Codec
from tests.cleaner_jobs.kernels.framed import padded
from tests.support.made_log import keyed, packed
from tests.support.reference_batch import HEADER, encode
from tests.support.reference_heads import sum_of_heads

PLAIN = [encode(keyed(0, "abc")), encode(keyed(3, "ad"))]
PACKED = packed(keyed(5, "efg"), Codec.ZSTD)
RAWS = [*PLAIN, PACKED]
IS_PACKED = [False, False, True]


def sealed(raws: Sequence[bytes], recompressed: Sequence[bool]) -> WrittenBatches:
    """The records of a compressed batch are those of PACKED, before they were compressed."""
    written = WrittenBatches()
    for raw, is_packed in zip(raws, recompressed, strict=True):
        written.add(padded(raw), len(raw), np.array([is_packed]))
        if is_packed:
            records = encode(keyed(5, "efg"))[HEADER.size :]
            written.add_digests(digests_of(padded(records), np.array([[0, len(records)]])))
    return written


def read_back(root: Path, raws: Sequence[bytes], written: WrittenBatches) -> None:
    path, buffers = root / "0.log", WorkerBuffers()
    path.write_bytes(b"".join(raws))
    check = ReadBackCheck(str(path), written)
    with WindowReader(str(path), 0, buffers) as reader:
        for window in reader.windows(0, path.stat().st_size):
            check.take(window)
            for run in payloads(window, buffers):
                check.take_payloads(run)
    check.finish()


def test_the_sum_of_heads_is_that_of_the_slow_twin() -> None:
    data = b"".join(RAWS)
    assert heads_of(padded(data), 0, len(data)) == (sum_of_heads(RAWS), 3)
    assert sealed(RAWS, IS_PACKED).heads == sum_of_heads(RAWS)


def test_what_was_sealed_is_read_back(tmp_path: Path) -> None:
    read_back(tmp_path, RAWS, sealed(RAWS, IS_PACKED))


@pytest.mark.parametrize(
    ("raws", "problem"),
    [
        ([*RAWS, encode(keyed(8, "h"))], "more batches are read back than were written"),
        (RAWS[:2], "the batches read back are not those that were written"),
        ([PLAIN[0], encode(keyed(3, "ae")), PACKED], "the batches read back are not those"),
        ([PLAIN[0], encode(keyed(4, "d")), PACKED], "the batches read back are not those"),
    ],
    ids=["one more", "one less", "another record", "another offset"],
)
def test_other_batches_raise_miswritten(tmp_path: Path, raws: list[bytes], problem: str) -> None:
    with pytest.raises(MiswrittenError, match=problem):
        read_back(tmp_path, raws, sealed(RAWS, IS_PACKED))


def test_records_that_were_others_before_they_were_compressed_raise_miswritten(
    tmp_path: Path,
) -> None:
    """The checksum fits: it was computed from what came out of the codec."""
    written = sealed(RAWS, IS_PACKED)
    written.add_digests(np.array([1], np.uint64))
    with pytest.raises(MiswrittenError, match="not those that were compressed"):
        read_back(tmp_path, RAWS, written)


def test_a_batch_that_was_copied_compressed_has_no_digest(tmp_path: Path) -> None:
    read_back(tmp_path, RAWS, sealed(RAWS, [False, False, False]))
