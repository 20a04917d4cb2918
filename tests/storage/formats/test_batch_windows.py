"""Buffers are kept and grow; what they hold is kept only where that is asked for."""

import numpy as np

from storage.formats.batch_windows import Buffers


def test_an_array_is_kept_until_a_longer_one_is_asked_for() -> None:
    buffers = Buffers()
    first = buffers.array("a", 10)
    assert first.dtype == np.uint8 and len(first) == 10
    assert buffers.array("a", 3) is first
    assert len(buffers.array("a", 11)) == 12  # a quarter more, so that growth is rare
    assert len(buffers.array("a", 100)) == 100
    assert buffers.array("b", 10) is not buffers.array("a", 10)


def test_rows_have_their_width_and_type() -> None:
    assert buffers_of(np.int64, 3).shape == (5, 3)
    assert buffers_of(np.int64, 3).dtype == np.int64


def buffers_of(dtype: type, width: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return Buffers().array("a", 5, dtype, width)


def test_keep_carries_over_what_is_used_and_no_more_is_promised() -> None:
    buffers = Buffers()
    held = buffers.keep("a", 4, 0, np.int64)
    held[:] = [1, 2, 3, 4]
    assert buffers.keep("a", 4, 3, np.int64) is held
    grown = buffers.keep("a", 9, 3, np.int64)
    assert len(grown) >= 9 and grown[:3].tolist() == [1, 2, 3]
    assert buffers.keep("a", 9, 0, np.int64) is grown


def test_rows_are_carried_over_too() -> None:
    buffers = Buffers()
    buffers.keep("a", 1, 0, np.uint64, 3)[0] = [7, 8, 9]
    assert buffers.keep("a", 50, 1, np.uint64, 3)[0].tolist() == [7, 8, 9]
