"""Lines to standard output and standard error, whichever file, pipe or terminal takes them."""

import codecs
import io
import logging
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, TextIOWrapper
from typing import Any, TextIO

_emptying = threading.Lock()  # or one would take for the stream what the other has put there
_problems: list[OSError] = []  # of standard output


def print_line(text: str) -> bool:
    """Print a line to standard output; return whether it was taken."""
    with standard_output() as out:
        out.write(f"{text}\n")
        out.flush()
        return True
    return False


def print_utf8(data: bytes, in_its_encoding: bool = False) -> bool:
    """Print whole lines of UTF-8 to standard output, and return whether they were taken.

    Args:
        data: The lines.
        in_its_encoding: Whether they are for a person: in the encoding of standard output, with
            escapes. Lines that a machine reads are UTF-8 in any locale.
    """
    with standard_output() as out:
        if isinstance(out, TextIOWrapper) and (
            not in_its_encoding or codecs.lookup(out.encoding).name == "utf-8"
        ):
            return print_bytes(data)
        out.write(data.decode())
        out.flush()
        return True
    return False


def print_bytes(data: bytes) -> bool:
    """Print bytes to standard output as they are; return whether they were taken.

    Without a byte: whether anybody reads, as far as a pipe knows.
    """
    with standard_output() as out:
        out.flush()
        out.buffer.write(data)
        out.buffer.flush()
        return bool(data) or _has_reader(out)
    return False


def _has_reader(out: TextIO) -> bool:
    poll = select.poll()
    poll.register(out.fileno(), select.POLLERR)
    return not poll.poll(0)


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Give standard output to a block, which goes on where its lines are not taken.

    A reader that has gone, as `head` does, is no problem; any other is reported at the end, see
    output_problem.
    """
    try:
        yield sys.stdout
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _problems.append(error)
        # the rest goes nowhere, so that the last flush does not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def unpadded() -> Iterator[None]:
    """Strip blanks from the ends of lines that a library prints in a block, off a terminal."""
    out = sys.stdout
    if out.isatty():
        yield
        return
    kept = TextIOWrapper(BytesIO(), out.encoding or "utf-8", "backslashreplace", newline="\n")
    sys.stdout = kept
    try:
        yield
    finally:
        sys.stdout = out
        kept.seek(0)
        out.writelines(f"{line.rstrip()}\n" for line in kept.read().splitlines())
        out.flush()


def output_problem() -> OSError | None:
    """Return why standard output did not take everything since the last call; None: it did."""
    problem = _problems[0] if _problems else None
    _problems.clear()
    return problem


def print_error(text: str) -> None:
    """Print a line to standard error, even if nobody can read it."""
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
    """Drop what a stream could not write; later lines are written as usual.

    Python would try again at its exit, and change the exit code where that fails.
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


def silence_libraries() -> None:
    """Keep what libraries log to themselves: py4j logs tracebacks of what we report in a line."""
    logging.getLogger().addHandler(logging.NullHandler())


def open_standard_streams() -> None:
    """Open the standard streams that the caller has closed, on /dev/null.

    Else the next file to be opened would have their number, and get what libraries and Java, which
    inherits them, write to it: a lock file, or a segment.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            assert opened == descriptor, f"{descriptor} was closed, {opened} opened"
            os.set_inheritable(descriptor, True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def forgive_encodings() -> None:
    """Let a terminal or pipe of another encoding than UTF-8 show escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a test's stream may have none
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


class BufferedOutput:
    """Buffered output of a command. is_wanted: whether it is printed at the end."""

    def __init__(self) -> None:
        self.out, self.error = io.StringIO(), io.StringIO()
        self.is_wanted = True


@contextmanager
def buffered_output() -> Iterator[BufferedOutput]:
    """Buffer standard output and standard error for `--quiet`; print them at the end if wanted."""
    streams = sys.stdout, sys.stderr
    buffered = BufferedOutput()
    sys.stdout, sys.stderr = buffered.out, buffered.error
    try:
        yield buffered
    finally:
        sys.stdout, sys.stderr = streams
        if buffered.is_wanted:
            if buffered.error.getvalue():
                print_error(buffered.error.getvalue().removesuffix("\n"))
            with standard_output() as out:
                out.write(buffered.out.getvalue())
                out.flush()
