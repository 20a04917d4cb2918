"""Whatever bit is wrong when a batch is sealed, or was when it was read: it is not written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c

from cleaner_jobs.kernels.kept_batches import KeptBatches
from cleaner_jobs.kernels.rebuild import rewrite_batches
from cleaner_jobs.problems import MiswrittenError
from cleaner_jobs.tasks import rewrite
from cleaner_jobs.tasks.batch_window import WindowReader
from cleaner_jobs.tasks.rewrite import BatchRewriter, CleaningRules
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.errors import CorruptFileError
from storage.formats.batch_columns import KEEP, SUPERSEDED, TOMBSTONE
from storage.formats.record import Record
from tests.support.legacy_writer import encode_message_set
from tests.support.made_log import batch, keyed, record
from tests.support.reference_batch import HORIZON, LOG_APPEND_TIME, encode, split
from tests.support.reference_heads import HEAD_BYTES, sum_of_heads

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
        self._path, self._buffers = path, WorkerBuffers()
        self.before: Touch = lambda *_: None
        self.after: Touch = lambda *_: None
        monkeypatch.setattr(rewrite, "rewrite_batches", self._rewrite_batches)

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
    return crc32c(raw[HEAD_BYTES:]) == int.from_bytes(raw[HEAD_BYTES - 4 : HEAD_BYTES], "big")


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
