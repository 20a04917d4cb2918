"""What logs of random histories see more of than others: defects hide where things come together.

A log that is being moved is cleaned twice; a run that deleted is undone after more was deleted; a
topic is created anew; a cleaner's entry is lost after cleanings that a run's files tell nothing of.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Theme(NamedTuple):
    """What a log sees more of than others."""

    weights: dict[str, float]  # over those of PLAIN
    policies: Sequence[str] = ("compact", "compact", "compact,delete")
    lost_entries: float = 0.5
    is_sparse: bool = False  # four large records of many keys fill a segment
    is_unique: bool = False  # no key comes again soon
    long_moves: bool = False  # over several starts of a broker, with deletions of keys meanwhile


PLAIN = {
    "append": 60.0, "roll": 10.0, "clean": 6.0, "retain": 2.0, "delete_records": 1.5,
    "truncate": 1.5, "checkpoint": 1.0, "leader": 1.0, "config": 0.5, "move": 1.0,
    "recreate": 0.5, "lag": 1.0,
}  # fmt: skip
_MOVED = Theme(
    {"move": 12, "append": 40, "truncate": 0, "recreate": 0, "delete_records": 0, "clean": 3},
    long_moves=True,
)
_FORGETFUL = Theme(
    {"clean": 0, "truncate": 0, "recreate": 0, "delete_records": 0},
    ("compact",),
    lost_entries=0.9,
    is_sparse=True,
)
_RETAINED = {"retain": 12.0, "clean": 1.0, "truncate": 0.0, "delete_records": 0.0, "config": 0.0}
THEMES = (
    Theme({}),
    Theme({}),
    _MOVED,
    _MOVED,
    _FORGETFUL,
    _FORGETFUL,
    Theme({"recreate": 6, "retain": 6, "delete_records": 4}, ("compact,delete",)),
    Theme({"retain": 8, "delete_records": 4}, ("compact,delete",)),
    Theme({**_RETAINED, "recreate": 0}, ("compact,delete",), is_unique=True),
    Theme({**_RETAINED, "recreate": 8}, ("compact,delete",), is_unique=True),
    Theme({"lag": 8, "truncate": 8, "leader": 4}),
    Theme({"transaction": 50, "append": 20}),
)
