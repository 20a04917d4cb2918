"""Each bound, met and missed."""

import pytest

from tests.bench.goals import (
    GROWTH_PAIRS,
    Goal,
    goals,
    growth_percent,
    segments_ratio,
    swap_growth_percent,
)
from tests.bench.results import Results, Sample, SwapResult
from tests.bench.samples import log_result, results


def test_speed_has_to_be_above_and_seconds_below() -> None:
    speeds = [Goal("speed", n, 4, 10, "×", True).rating() for n in (10, 9.9, 4, 3.9)]
    times = [Goal("time", n, 15, 5, "s").rating() for n in (5, 5.1, 15, 16)]
    assert speeds == times == ["aim reached", "reached", "reached", "missed"]


def test_goals_are_those_for_which_there_are_results() -> None:
    run = results(log_result("100b-none"), log_result("small"), log_result("1000b-none"))
    assert [(goal.what.split(":")[0][:10], goal.measured) for goal in goals(run)] == [
        ("100b-none", 5),
        ("1000b-none", 5),
        ("small log,", 8),
        ("small log,", 10),
        ("plan over ", 5),
        ("recovery o", 8),
        ("a log mana", 2),
        ("a log mana", 90),
        ("2,000 smal", 9),
        ("2,000 smal", 13),
        ("tables", 2.5),
        ("tables", 1.5),
        ("engine, 1 ", 0.5),
        ("swap, 1 a ", 0),
        ("largest Py", 300),
        ("driver, re", 200),
    ]
    assert list(goals(Results({}))) == []


def test_growth_is_of_cpu_seconds_per_gigabyte() -> None:
    less = results(log_result("100b-0.8gb", 1_000), log_result("100b-4gb", 1_250))
    more = results(log_result("100b-0.8gb", 1_000), log_result("100b-4gb", 800))
    assert growth_percent(less, "warm", GROWTH_PAIRS[0]) == pytest.approx(-20)
    assert growth_percent(more, "warm", GROWTH_PAIRS[0]) == pytest.approx(25)
    assert growth_percent(more, "warm", GROWTH_PAIRS[1]) is None
    assert [g.rating() for g in goals(more) if "per GB" in g.what] == ["missed"]
    assert [g.rating() for g in goals(less) if "per GB" in g.what] == ["aim reached"]


def test_growth_of_a_swap_is_that_of_a_segment_of_the_longest_log() -> None:
    swaps = [
        *(SwapResult(n, 1, [Sample(1, n / 100)]) for n in (100, 200)),
        *(SwapResult(n, 10, [Sample(1, n * n / 100)]) for n in (300, 100)),
        SwapResult(100, 5, [Sample(1, 1)]),
    ]
    growth = swap_growth_percent(Results({}, swaps=tuple(swaps)))
    assert growth == pytest.approx({1: 0, 10: 200})


def test_what_segments_cost_is_held_at_equal_bytes() -> None:
    run = results(log_result("7-segments", 1_000), log_result("7000-segments", 500))
    assert segments_ratio(run) == 2
    assert [g.rating() for g in goals(run) if "7-segments" in g.what] == ["missed"]
    assert segments_ratio(results()) is None
