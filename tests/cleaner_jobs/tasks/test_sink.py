"""Writing goes on where a file takes less than it was given."""

import numpy as np
import pytest

from cleaner_jobs.tasks.sink import write_whole


class Short:
    """Takes so many bytes at a time, as an unbuffered file may."""

    def __init__(self, most: int | None) -> None:
        self.most, self.taken = most, b""

    def write(self, data: memoryview) -> int | None:
        if self.most is None:  # says nothing, takes it all
            self.taken += bytes(data)
            return None
        self.taken += bytes(data[: self.most])
        return min(self.most, len(data))


@pytest.mark.parametrize("most", [1, 7, 23, 24, 25, 1000, None])
def test_all_bytes_are_written_in_order(most: int | None) -> None:
    sink, numbers = Short(most), np.arange(3, dtype=np.uint64).reshape(1, 3)
    write_whole(sink, numbers.data)
    assert sink.taken == numbers.tobytes()


def test_nothing_is_nothing() -> None:
    sink = Short(None)
    write_whole(sink, np.zeros((0, 3), np.uint64).data)
    write_whole(sink, memoryview(b""))
    assert sink.taken == b""
