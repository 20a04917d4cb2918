"""Whatever bit is wrong when a batch is sealed, or was when it was read: it is not written."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c

from cleaner_jobs.kernels.kept_batches import KeptBatches
from cleaner_jobs.kernels.rebuild import rewrite_batches
from cleaner_jobs.problems import MiswrittenError
from cleaner_jobs.tasks import batch_rewriter
from cleaner_jobs.tasks.batch_rewriter import BatchRewriter, CleaningRules
from cleaner_jobs.tasks.rewrite_check import ReadBackCheck, WrittenBatches, heads_of
from cleaner_jobs.tasks.window_reader import WindowReader, digests_of, payloads
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats.batch_columns import KEEP, SUPERSEDED, TOMBSTONE
from storage.formats.batch_windows import Buffers
from storage.formats.record import Record
from tests.cleaner_jobs.kernels.framed import padded
from tests.support.legacy_writer import encode_message_set
from tests.support.made_log import batch, keyed, packed, record
from tests.support.reference_batch import (
    CRC_STARTS_AT,
    HEADER,
    HORIZON,
    LOG_APPEND_TIME,
    encode,
    split,
    sum_of_heads,
)

GONE = SUPERSEDED
STAMPED = encode(batch(record(20, b"a"), record(21, b"b"), attributes=LOG_APPEND_TIME))
WITH_HORIZON = encode(
    batch(record(30, b"a"), record(31, b"b"), attributes=HORIZON, base_timestamp=90)
)
LEGACY = encode_message_set(1, [Record(0, 100, b"a", b"1"), Record(1, 200, b"b", b"value")])
WAYS = {
    "copied": ([encode(keyed(0, "ab"))], [KEEP, KEEP]),
    "rebuilt": ([encode(keyed(0, "ab"))], [GONE, KEEP]),
    "with a tombstone": ([encode(keyed(0, "aB"))], [KEEP, TOMBSTONE]),
    "with a horizon": ([WITH_HORIZON], [GONE, KEEP]),
    "with log append time": ([STAMPED], [GONE, KEEP]),
    "emptied": ([encode(batch(record(38, b"a"), record(39, b"b")))], [GONE, GONE]),
    "of format v1": ([LEGACY], [KEEP, KEEP]),
    "after one that goes": ([encode(keyed(0, "a")), encode(keyed(1, "bc"))], [GONE, KEEP, GONE]),
}
Touch = Callable[..., None]


class RewrittenWindow:
    """One window of batches, rewritten as often as wanted; each time it is read again."""

    def __init__(self, path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches, self._states = WAYS[way]
        path.write_bytes(b"".join(self.batches))
        self._path, self._buffers = path, Buffers()
        self.before: Touch = lambda *_: None
        self.after: Touch = lambda *_: None
        monkeypatch.setattr(batch_rewriter, "rewrite_batches", self._rewrite_batches)

    def _rewrite_batches(self, *given: Any) -> Any:
        self.before(given[0][0])
        result = rewrite_batches(*given)
        self.after(given[5])
        return result

    def rewritten(self) -> bytes:
        data = bytearray()
        rules = CleaningRules(KeptBatches.of(40, ()), 0, 1000)
        rewriter = BatchRewriter(rules, _Into(data), self._buffers)
        with WindowReader(str(self._path), 0, self._buffers) as reader:
            (window,) = reader.windows(0, self._path.stat().st_size)
            rewriter.rewrite(window, np.array(self._states, np.uint8))
            self.read = bytes(window.batches())
        rewriter.finish()
        assert rewriter.written.heads == sum_of_heads(split(bytes(data)))
        return bytes(data)


class _Into:
    def __init__(self, data: bytearray) -> None:
        self._data = data

    def write(self, data: memoryview) -> None:
        self._data += data


@pytest.fixture(params=WAYS)
def window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> RewrittenWindow:
    return RewrittenWindow(tmp_path / "0.log", request.param, monkeypatch)


def is_sealed(raw: bytes) -> bool:
    return crc32c(raw[CRC_STARTS_AT:]) == int.from_bytes(
        raw[CRC_STARTS_AT - 4 : CRC_STARTS_AT], "big"
    )


def test_every_bit_before_a_batch_is_sealed(window: RewrittenWindow) -> None:
    """One under a checksum that was copied is left to the reading back."""
    expected = window.rewritten()
    assert all(map(is_sealed, split(expected)))
    for bit in range(8 * len(expected)):

        def turn(out: Any, bit: int = bit) -> None:
            out[bit // 8] ^= 1 << bit % 8

        window.after = turn
        try:
            found = window.rewritten()
        except MiswrittenError:
            continue
        assert found == expected or not all(map(is_sealed, split(found))), bit


def test_every_bit_after_a_batch_was_read(window: RewrittenWindow) -> None:
    """What no checksum covers differs from what was scanned: the sums of both are compared."""
    expected = window.rewritten()
    for bit in range(8 * len(window.read)):

        def turn(buffer: Any, bit: int = bit) -> None:
            buffer[bit // 8] ^= 1 << bit % 8

        window.before = turn
        try:
            found = window.rewritten()
        except CorruptFileError:
            continue
        if found != expected and all(map(is_sealed, split(found))):
            assert sum_of_heads(split(window.read)) != sum_of_heads(window.batches), bit


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
    path, buffers = root / "0.log", Buffers()
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
