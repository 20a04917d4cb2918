"""Arrays that are kept from one use to the next.

Fresh pages cost as much as the work on them, so arrays are kept by name and only ever grow; their
sizes are bounded by what is worked on at once, not by the size of a log.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Buffers:
    """Arrays by name. What one holds is lost when it is asked for again in a larger size."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, length: int, dtype: Any = np.uint8, width: int = 0) -> NDArray[Any]:
        """Give at least length elements (or rows of that width); only its holder may use them."""
        held = self._arrays.get(name)
        if held is None or held.shape[0] < length:
            room = self._room(length, 0 if held is None else held.shape[0])
            self._arrays.pop(name, None)  # before the new one is made, so that both never stand
            held = np.empty((room, width) if width else room, dtype)
            self._arrays[name] = held
        return held

    def keep(
        self, name: str, length: int, used: int, dtype: Any = np.uint8, width: int = 0
    ) -> NDArray[Any]:
        """As array, but the first `used` elements are carried over when it has to grow."""
        held = self._arrays.get(name)
        if held is None or held.shape[0] >= length or not used:
            return self.array(name, length, dtype, width)
        room = self._room(length, held.shape[0])
        grown = np.empty((room, width) if width else room, dtype)
        grown[:used] = held[:used]
        self._arrays[name] = grown
        return grown

    def _room(self, length: int, held: int) -> int:
        """How long an array is made where one of length `held` is too short: growth is rare."""
        return max(length, held * 5 // 4)
