"""Numbers of the API that have a least, or a most: as annotations, which `arguments` checks."""

from typing import Annotated, NamedTuple


class Bounds(NamedTuple):
    """Both are allowed themselves."""

    least: int
    most: int | None = None  # None: that of 64 bits

    @property
    def words(self) -> str:
        return f"from {self.least} on" if self.most is None else f"from {self.least} to {self.most}"

    def allow(self, number: float) -> bool:
        """Say whether a number lies within them."""
        return self.least <= number and (self.most is None or number <= self.most)


Natural = Annotated[int, Bounds(0)]
Positive = Annotated[int, Bounds(1)]
Niceness = Annotated[int, Bounds(0, 19)]
