"""The kernels of the engine, where they pay.

It takes a second to load them, of which a program that looks at a few batches is spared: they come
when a process has gone through PAYS_FROM_BYTES without them. Where numba is not installed they
never come. The answers are the same with them and without.
"""

from importlib import import_module
from types import ModuleType

PAYS_FROM_BYTES = 1 << 20
_ROOM = "storage.log.kernels"


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
            self.kernels = import_module(_ROOM)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("numba", "llvmlite"):
                raise
            self._are_missing = True


COMPILED = _Compiled()
