"""Where tasks write: unbuffered files, and whatever takes bytes as they do."""

from typing import Protocol

from storage.files import io_limit


class Sink(Protocol):
    def write(self, data: memoryview, /) -> object: ...


def write_whole(sink: Sink, data: memoryview) -> None:
    """Write all of data; an unbuffered file may take less at a time.

    On Linux that is more than 2 GiB, and what no longer fits a disk that is nearly full: only the
    next call raises there.
    """
    io_limit.take(data.nbytes)
    rest = data.cast("B") if data.nbytes else data[:0]  # nothing cannot be cast
    while len(rest):
        taken = sink.write(rest)
        rest = rest[taken if isinstance(taken, int) else len(rest) :]
