"""What a look into a log says would go of it: a value."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """What share of the bytes that are read and rewritten would go."""

    least: float | None  # None: it cannot be told
    most: float | None
    read_bytes: int
    problem: str | None = None  # why it cannot be told

    @property
    def is_exact(self) -> bool:
        return self.least is not None and self.least == self.most


def cannot_tell(read_bytes: int, problem: str) -> Estimate:
    """No estimate, and why."""
    return Estimate(None, None, read_bytes, problem)
