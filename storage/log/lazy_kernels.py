"""The kernels of the engine, where they pay.

It takes a second to load them, of which a program that looks at a few batches is spared: they come
when a process has gone through PAYS_FROM_BYTES without them. Where numba is not installed they
never come. The answers are the same with them and without.
"""

import threading
from importlib import import_module
from types import ModuleType

import numpy as np

PAYS_FROM_BYTES = 1 << 20
_KERNELS = "storage.log.kernels"


class _Compiled:
    """One for the process. Two threads may load them at once, which is one load."""

    def __init__(self) -> None:
        self.kernels: ModuleType | None = None
        self.left_bytes = PAYS_FROM_BYTES  # to go through before they are loaded
        self._are_missing = False

    def kernels_for(self, size_bytes: int) -> ModuleType | None:
        """Give `storage.log.kernels` for work on so many bytes; None to do without."""
        if self.kernels is None and not self._are_missing:
            self.left_bytes -= size_bytes
            if self.left_bytes < 0:
                self._load()
        return self.kernels

    def _load(self) -> None:
        try:
            self.kernels = import_module(_KERNELS)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("numba", "llvmlite"):
                raise
            self._are_missing = True


COMPILED = _Compiled()


_SLACK_BYTES = 64
_FIRST_BYTES = 1 << 16
_KEPT_BYTES = 1 << 21  # what was larger is let go of with the next use
_NUMBERS = 32
_WINDOW_BYTES = 8192  # two index entries are half as far apart, by default
_BATCHES, _FIELDS_OF_BATCH = 512, 8
_PRODUCERS, _FIELDS_OF_PRODUCER = 16, 4


class KernelBuffers:
    """Buffers of one thread for kernels.

    `buffer` holds what a kernel looks at, with the bytes that kernels need past its end; `view` is
    the same as bytes. `numbers` are arguments of a kernel, or what it keeps in mind; so is their
    view. `window` is for a kernel that reads a file, and may do so while the buffer holds an
    append; `batches` and `producers` are for what that consists of, and for who sent it.
    """

    __slots__ = (
        "batches",
        "batches_view",
        "buffer",
        "numbers",
        "numbers_view",
        "producers",
        "producers_view",
        "size_bytes",
        "view",
        "window",
    )

    def __init__(self) -> None:
        self._make_room(_FIRST_BYTES)
        self.numbers = np.zeros(_NUMBERS, np.int64)
        self.window = np.zeros(_WINDOW_BYTES, np.uint8)
        self.numbers_view = self.numbers.data.cast("B")
        self.batches = np.zeros((_BATCHES, _FIELDS_OF_BATCH), np.int64)
        self.batches_view = self.batches.data.cast("B")
        self.producers = np.zeros((_PRODUCERS, _FIELDS_OF_PRODUCER), np.int64)
        self.producers_view = self.producers.data.cast("B")

    def _make_room(self, size_bytes: int) -> None:
        self.buffer = np.zeros(size_bytes + _SLACK_BYTES, np.uint8)
        self.view, self.size_bytes = self.buffer.data, size_bytes

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Copy data to the beginning of the buffer."""
        size = len(data)
        if size > self.size_bytes or size <= _KEPT_BYTES < self.size_bytes:
            self._make_room(max(size, min(2 * size, _KEPT_BYTES)))
        self.view[:size] = data


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.scratch = KernelBuffers()


_OF_THREAD = _OfThread()


def scratch() -> KernelBuffers:
    """That of this thread."""
    return _OF_THREAD.scratch
