"""Lines to standard output and standard error, whatever stands at their other end."""

import logging
import os
import sys


def print_line(text: str) -> None:
    """To standard output, also when whoever read it has gone, as `head` does."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def print_error(text: str) -> None:
    """To standard error. What cannot be told there cannot be told: the exit code still can."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


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
