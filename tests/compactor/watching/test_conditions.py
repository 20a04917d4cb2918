"""Conditions: by hand, and against a walk over every log that knows nothing of them."""

import pytest

from compactor.errors import UsageError
from compactor.watching.conditions import Condition
from compactor.watching.measures import LogMeasures, Measures

NAMES = ("dirty_ratio", "dirty_bytes")


def log(partition: int, counted_as: str = "eligible", **values: float) -> LogMeasures:
    return LogMeasures("/data", "orders", partition, counted_as, None, values)


LOGS = (
    log(0, dirty_ratio=0.9, dirty_bytes=1000),
    log(1, dirty_ratio=0.5, dirty_bytes=3000),
    log(2, "passed_over", dirty_ratio=0.0, dirty_bytes=0),
    log(3, "set_aside"),
)
ALL = Measures(
    NAMES,
    LOGS,
    {
        "logs": 4,
        "eligible": 2,
        "passed_over": 1,
        "set_aside": 1,
        "failed": 0,
        "max_dirty_ratio": 0.9,
        "max_dirty_bytes": 3000,
        "sum_dirty_bytes": 4000,
    },
    0,
)


@pytest.mark.parametrize(
    ("text", "concerned"),
    [
        ("dirty_ratio > 0.8", [0]),
        ("dirty_ratio >= 0.5 and dirty_bytes <= 2000", [0]),
        ("0.4 < dirty_ratio < 0.6", [1]),
        ("0.4<dirty_ratio<0.6 and\tdirty_bytes!=3e3", []),
        ("dirty_bytes == 3e+3", [1]),
        ("-1 < dirty_bytes", [0, 1, 2]),
        ("dirty_bytes >= 1_000", [0, 1]),
        ("dirty_ratio <= .1", [2]),  # not log 3, of which nothing is known
        ("dirty_ratio == dirty_ratio", [0, 1, 2]),
        ("dirty_ratio > 0.8 and set_aside > 0", [0]),
        ("dirty_ratio > 0.8 and set_aside > 1", []),
        ("max_dirty_ratio > 0.4", [0, 1]),
        ("max_dirty_ratio > 0.8", [0]),
        ("max_dirty_ratio > 0.95", []),
        ("set_aside > 0", [3]),
        ("set_aside > 0 and max_dirty_ratio > 0.8", [0, 3]),
        ("0.4 < max_dirty_ratio < 0.95", [0, 1]),
    ],
)
def test_it_concerns_these_logs(text: str, concerned: list[int]) -> None:
    condition = Condition(text, NAMES)
    assert [found.log.partition for found in condition.concerned(ALL)] == concerned
    assert condition.holds(ALL) is bool(concerned)


@pytest.mark.parametrize("text", ["sum_dirty_bytes > 3999", "eligible == 2 and logs == 4"])
def test_a_sum_can_hold_without_a_log_to_point_at(text: str) -> None:
    condition = Condition(text, NAMES)
    assert condition.holds(ALL)


def test_the_numbers_that_it_names_come_with_each_log() -> None:
    (found,) = Condition("dirty_ratio > 0.8 and set_aside > 0", NAMES).concerned(ALL)
    assert found.values == {"dirty_ratio": 0.9}
    (found,) = Condition("max_dirty_bytes > 2000", NAMES).concerned(ALL)
    assert found.values == {"dirty_bytes": 3000}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing is no comparison"),
        ("  ", "nothing is no comparison"),
        ("dirty_ratio >", "dirty_ratio > is no comparison"),
        ("dirty_ratio", "dirty_ratio is no comparison"),
        ("(dirty_ratio > 0.8)", "(dirty_ratio > 0.8) is no comparison"),
        ("dirty_ratio > 0.8 or logs > 1", "0.8 or logs > 1 is no comparison"),
        ("logs > 1 and not dirty_ratio > 0.8", ": not dirty_ratio > 0.8 is no comparison"),
        ("and logs > 1", "nothing is no comparison"),
        ("logs > 1 and", "nothing is no comparison"),
        ("logs > 1 and and logs > 1", "nothing is no comparison"),
        ("logs > 1 logs > 1", "is no comparison"),
        ("logs > > 1", "is no comparison"),
        ("logs = 1", "is no comparison"),
        ("logs > 1 + 1", "is no comparison"),
        ("logs - 1 > 0", "is no comparison"),
        ("max_dirty_rati > 1", "did you mean max_dirty_ratio?"),
        ("zzz > 1", "there are dirty_bytes, "),
        ("dirty_ratio > True", "there is no True"),
        ("'a' > dirty_ratio", "is no comparison"),
        ("__import__('os').system('true') > 0", "is no comparison"),
        ("dirty_ratio > 0x10", "is no comparison"),
        ("dirty_ratio > 1__0", "is no comparison"),
        ("dirty_ratio > 1e400", "is no comparison"),
        ("dirty_ratio > " + "9" * 400, "is no comparison"),
        ("1 > 0\x00", "is no comparison"),
    ],
)
def test_anything_else_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match="fail_if") as caught:
        Condition(text, NAMES)
    assert says in str(caught.value)
