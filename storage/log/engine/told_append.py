"""What the kernel of plain appends is told, and what it tells. Source: append_kernel."""

from collections.abc import Callable
from functools import partial
from struct import Struct

import numpy as np

from storage.log.engine.scratch import Scratch

_OF_ONE = Struct("=5q")  # the fields of append_kernel.PlainAppend: of one append
_OF_LOG = Struct("=23q")  # the others
_CHANGED = Struct("=7q")  # what of those is as after the append
_FIELDS = (_OF_ONE.size + _OF_LOG.size) // 8
_CHANGED_AT = _OF_ONE.size + _OF_LOG.size - _CHANGED.size
_TAKEN = Struct("=8q")  # append_kernel.TakenBatch
_TAKEN_BYTES = _TAKEN.size


class ToldAppend:
    """The numbers of one log, in the order of append_kernel.PlainAppend.

    tell_of_one takes the fields of an append, from `start` on; tell those of the log, from
    `write` on; changed gives the log behind an append that is done, from `next_offset` on.
    """

    __slots__ = ("changed", "numbers", "tell", "tell_of_one")

    def __init__(self) -> None:
        self.numbers = np.zeros(_FIELDS, np.int64)
        view = self.numbers.data.cast("B")
        self.tell_of_one: Callable[..., None] = partial(_OF_ONE.pack_into, view, 0)
        self.tell: Callable[..., None] = partial(_OF_LOG.pack_into, view, _OF_ONE.size)
        self.changed: Callable[[], tuple[int, ...]] = partial(
            _CHANGED.unpack_from, view, _CHANGED_AT
        )


NOTHING_TOLD = ToldAppend()


def row_of(room: Scratch, number: int) -> tuple[int, ...]:
    """A batch that was taken, by its number: the fields of append_kernel.TakenBatch."""
    return _TAKEN.unpack_from(room.batches_view, number * _TAKEN_BYTES)
