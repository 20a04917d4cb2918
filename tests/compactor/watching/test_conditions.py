"""Conditions: by hand, and against a walk over every log that knows nothing of them."""

import pytest

from compactor.exit_codes import UsageError
from compactor.watching.conditions import MAX_LENGTH, Condition
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
        ("dirty_ratio > 0.8 or dirty_bytes > 2000", [0, 1]),
        ("dirty_ratio >= 0.5 and not dirty_bytes > 2000", [0]),
        ("0.4 < dirty_ratio < 0.6", [1]),
        ("dirty_bytes / 1000 == 3", [1]),
        ("-dirty_bytes < -(2000 + 500)", [1]),
        ("dirty_bytes >= 1_000", [0, 1]),
        ("not dirty_ratio > 0.1", [2]),  # not of log 3, of which nothing is known
        ("dirty_ratio == dirty_ratio", [0, 1, 2]),
        ("dirty_ratio > 0.8 and set_aside > 0", [0]),
        ("dirty_ratio > 0.8 and set_aside > 1", []),
        ("max_dirty_ratio > 0.4", [0, 1]),
        ("max_dirty_ratio > 0.8", [0]),
        ("max_dirty_ratio > 0.95", []),
        ("set_aside > 0", [3]),
        ("set_aside > 0 or max_dirty_ratio > 0.8", [0, 3]),
        ("dirty_bytes / (dirty_ratio - 0.5) > 0", [0]),  # a division by zero decides nothing
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
        ("", "not a condition"),
        ("dirty_ratio >", "not a condition"),
        ("dirty_ratio > 0.8)", "not a condition at character 18"),
        ("dirty_ratio", "compares nothing"),
        ("1 + 1", "compares nothing"),
        ("max_dirty_rati > 1", "did you mean max_dirty_ratio?"),
        ("zzz > 1", "there are dirty_bytes, "),
        ("__import__('os').system('true') > 0", "not understood"),
        ("(1).real > 0", "not understood"),
        ("'a' > dirty_ratio", "not understood"),
        ("dirty_ratio > True", "not understood"),
        ("dirty_ratio ** 2 > 1", "not understood"),
        ("dirty_ratio in [1]", "not understood"),
        ("(dirty_ratio > 1) + 1 > 0", "not understood"),
        ("not dirty_ratio", "not understood"),
        ("dirty_ratio > 1 if 1 > 0 else 2 > 1", "compares nothing"),
        ("dirty_ratio > 1e400", "not understood"),
        ("dirty_ratio > " + "9" * 400, "not understood"),
        ("(" * 300 + "1" + ")" * 300 + " > 0", "not a condition"),
        ("-" * 200 + "1 > 0", "not understood"),
        ("1 > 0\x00", "not a condition"),
        ("1" * MAX_LENGTH + " > 0", "at most 1000 characters"),
    ],
)
def test_anything_else_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match="--fail-if") as caught:
        Condition(text, NAMES)
    assert says in str(caught.value)
