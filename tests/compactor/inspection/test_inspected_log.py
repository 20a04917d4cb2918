"""When a tombstone can go at the earliest, by what an inspection has counted (C-11.3, C-11.7)."""

import numpy as np
import pytest

from cleaner_jobs import inspection_counters as of
from compactor.inspection.inspected_log import Cleaning, tombstones_of

NOW_MS, RETENTION_MS = 10_000, 1_000
GIVEN_NEXT_MS = 11_000  # by a cleaning now: delete.retention.ms later
LATE_MS = 50_000  # a horizon that was given when delete.retention.ms was longer
SECTIONS = {"clean": of.CLEAN, "dirty": of.DIRTY, "behind": of.UNCLEANABLE}


def earliest(*stones: str, is_compacted: bool = True) -> int | None:
    """stones: each a section and a horizon: `none`, `legacy`, or a time in ms."""
    counters = np.zeros(of.COUNTERS, np.int64)
    counters[of.LEAST_AT : of.GREATEST_AT] = of.MAX_INT64
    for section, horizon in map(str.split, stones):
        kind = {"none": of.NO_HORIZON, "legacy": of.LEGACY_FORMAT}.get(horizon)
        if kind is None:
            kind = of.HORIZON_PASSED if int(horizon) <= NOW_MS else of.HORIZON_AHEAD
            counters[of.LEAST_HORIZON] = min(counters[of.LEAST_HORIZON], int(horizon))
        cell = of.TOMBSTONES_AT + (SECTIONS[section] * of.HORIZONS + kind) * of.TOMBSTONE_CELL
        counters[cell : cell + 2] += [1, 30]
    return tombstones_of(
        counters, None, Cleaning(is_compacted, RETENTION_MS, NOW_MS)
    ).earliest_removal_ms


@pytest.mark.parametrize(
    ("stones", "expected"),
    [
        ((), None),
        (("dirty none",), GIVEN_NEXT_MS),
        (("clean 9999",), NOW_MS),
        (("clean 10000", "dirty none", "clean 10001"), NOW_MS),
        (("dirty legacy", "clean 10500"), NOW_MS),
        (("clean 10500", "clean 10700"), 10_500),
        (("clean 10500", "dirty none"), 10_500),
        (("clean 50000",), LATE_MS),  # no cleaning gives another
        (("clean 50000", "dirty none"), GIVEN_NEXT_MS),
        (("clean 50000", "behind none"), GIVEN_NEXT_MS),
        (("behind none",), GIVEN_NEXT_MS),
        (("behind 9999", "clean 10500"), NOW_MS),
    ],
)
def test_the_earliest_removal_is_the_first_of_all(
    stones: tuple[str, ...], expected: int | None
) -> None:
    assert earliest(*stones) == expected


def test_in_a_topic_that_is_not_compacted_none_goes() -> None:
    assert earliest("clean 9999", "dirty none", is_compacted=False) is None
