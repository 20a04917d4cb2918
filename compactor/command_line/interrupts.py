"""Ctrl-C, SIGTERM and SIGHUP while a command runs: each ends it, by whichever error.

pyspark puts a handler of its own in place that first calls Java; where Java is busy or going away,
the error is a refused connection. So signals are noted on their way in, before any handler.
"""

import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Self

from compactor.outcome.exit_codes import HungUp, Terminated

_RAISED: dict[int, type[KeyboardInterrupt]] = {
    signal.SIGTERM: Terminated,
    signal.SIGHUP: HungUp,
}


class SignalNotes:
    """Notes the signals that end a command while it is open.

    SIGTERM raises Terminated and SIGHUP HungUp, and `received` knows of them and of Ctrl-C. A
    SIGHUP that is ignored, as under nohup, stays so.

    To be used on the main thread, as everything that has to do with signals.
    """

    def __enter__(self) -> Self:
        self._notes, self._pen = socket.socketpair()
        self._notes.setblocking(False)
        self._pen.setblocking(False)
        self._descriptor_before = signal.set_wakeup_fd(
            self._pen.fileno(), warn_on_full_buffer=False
        )
        self._handlers_before: dict[int, Any] = {
            number: signal.signal(number, _raise)
            for number in _RAISED
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        self._on_interrupt = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.signal(signal.SIGINT, self._on_interrupt)
        signal.set_wakeup_fd(self._descriptor_before)
        self._notes.close()
        self._pen.close()

    def hold(self) -> None:
        """Only note signals from now on: what a command writes at its end is written whole."""
        for number in (*self._handlers_before, signal.SIGINT):
            signal.signal(number, _note)

    def let_go(self) -> None:
        """Let the next signal end the command again."""
        for number in self._handlers_before:
            signal.signal(number, _raise)
        signal.signal(signal.SIGINT, self._on_interrupt)

    def received(self) -> KeyboardInterrupt | None:
        """Return what asked the command to end since the last call, if anything has."""
        try:
            numbers = self._notes.recv(4096)  # a byte for each signal
        except BlockingIOError:
            return None
        for number, interrupt in _RAISED.items():
            if number in numbers:
                return interrupt()
        return KeyboardInterrupt() if signal.SIGINT in numbers else None


def _raise(number: int, _frame: FrameType | None) -> None:
    raise _RAISED[number]


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal was noted before its handler was called."""
