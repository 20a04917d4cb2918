"""Lines to standard output and standard error, whatever stands at their other end."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

_emptying = threading.Lock()  # or one would take for the stream what the other has put there


def print_line(text: str) -> None:
    """To standard output, also when whoever read it has gone, as `head` does."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def print_error(text: str) -> None:
    """To standard error. What cannot be told there cannot be told: the exit code still can."""
    stream = ForgivingStream(sys.stderr)
    stream.write(f"{text}\n")
    stream.flush()


class ForgivingStream:
    """Drops what cannot be written: to a full disk, or where a reader or a terminal has gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _forgiving(self._stream):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with _forgiving(self._stream):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's own: whether it is a terminal, its encoding."""
        return getattr(self._stream, name)


@contextmanager
def _forgiving(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except OSError:
        with suppress(OSError):  # there may be no descriptor, or none to be had
            _empty(stream)


def _empty(stream: TextIO) -> None:
    """Let go of what a stream could not get rid of: Python tries again at the exit, and where that
    fails changes the exit code. What comes later is written as ever; the disk may have room again.
    """
    descriptor = stream.fileno()
    with _emptying, open(os.devnull, "wb") as nowhere:
        kept = os.dup(descriptor)
        try:
            os.dup2(nowhere.fileno(), descriptor)
            stream.flush()
        finally:
            os.dup2(kept, descriptor)
            os.close(kept)


def discard_output() -> None:
    """Send the rest of standard output nowhere, so that the last flush does not fail either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def silence_libraries() -> None:
    """Keep what libraries log to themselves: py4j logs tracebacks of what is told in one line."""
    logging.getLogger().addHandler(logging.NullHandler())


def forgive_encodings() -> None:
    """Let a terminal or pipe of another encoding than UTF-8 show escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a test's stream may have none
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
