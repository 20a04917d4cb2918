"""Ctrl-C and SIGTERM while a command runs: both end it, whatever error they come out as.

pyspark puts a handler of its own in place that first calls Java; where Java is busy or going away,
what arrives here is a refused connection. So signals are noted on their way in, before any handler.
"""

import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Self

from compactor.exit_codes import Terminated


class SignalNotes:
    """While it is open, SIGTERM raises Terminated, and `received` knows of it and of Ctrl-C.

    To be used on the main thread, as everything that has to do with signals.
    """

    def __enter__(self) -> Self:
        self._notes, self._pen = socket.socketpair()
        self._notes.setblocking(False)
        self._pen.setblocking(False)
        self._descriptor_before = signal.set_wakeup_fd(
            self._pen.fileno(), warn_on_full_buffer=False
        )
        self._handler_before: Any = signal.signal(signal.SIGTERM, _terminate)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGTERM, self._handler_before)
        signal.set_wakeup_fd(self._descriptor_before)
        self._notes.close()
        self._pen.close()

    def received(self) -> KeyboardInterrupt | None:
        """What asked the command to end since the last call, if anything has."""
        try:
            numbers = self._notes.recv(4096)  # a byte for each signal
        except BlockingIOError:
            return None
        if signal.SIGTERM in numbers:
            return Terminated()
        return KeyboardInterrupt() if signal.SIGINT in numbers else None


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated
