"""Each bound, met and missed."""

import pytest

from tests.bench.goals import (
    GROWTH_PAIRS,
    Bounds,
    Goal,
    goals,
    growth_percent,
    segments_ratio,
    swap_growth_percent,
)
from tests.bench.results import DRIVER, Peak, Results, Sample, SwapResult
from tests.bench.samples import MIB, log_result, results


def test_speed_has_to_be_above_and_seconds_below() -> None:
    rates, seconds = Bounds(4, 10), Bounds(15, 5)
    speeds = [Goal("", None, n, rates, "×", True).rating() for n in (10, 9.9, 4, 3.9)]
    times = [Goal("", None, n, seconds, "s").rating() for n in (5, 5.1, 15, 16)]
    assert speeds == times == ["aim reached", "reached", "reached", "missed"]


def test_a_goal_without_an_aim_is_reached_or_missed() -> None:
    speeds = [Goal("", "spark", n, Bounds(4), "×", True).rating() for n in (400, 4, 3.9)]
    assert speeds == ["reached", "reached", "missed"]


def test_goals_are_those_for_which_there_are_results() -> None:
    run = results(log_result("100b-none"), log_result("small"), log_result("1000b-none"))
    found = [(goal.what[:13], goal.engine, goal.measured, *goal.bounds) for goal in goals(run)]
    assert found == [
        ("100b-none, wa", "local", 6.25, 9, 12),
        ("100b-none, wa", "spark", 5, 8, None),
        ("1000b-none, w", "local", 6.25, 3.2, 4),
        ("1000b-none, w", "spark", 5, 2.8, None),
        ("100b-none, co", "local", 2.5, 3, 5),
        ("100b-none, co", "spark", 1.25, 1.5, None),
        ("1000b-none, c", "local", 2.5, 1, 1.5),
        ("1000b-none, c", "spark", 1.25, 0.37, None),
        ("small, from p", "local", 4, 1, 0.7),
        ("small, from p", "spark", 8, 2.9, None),
        ("small, the sa", "local", 5, 1.2, None),
        ("small, the sa", "spark", 10, 4.7, None),
        ("2,000 small l", "spark", 9, 12, 6),
        ("2,000 small l", "spark", 13, 8.9, None),
        ("2,000 small l", "local", 4, 5, 3),
        ("largest worke", "local", 250, 300, None),
        ("largest worke", "spark", 300, 300, None),
        ("driver, resid", "local", 170, 300, None),
        ("driver, resid", "spark", 200, 300, None),
        ("plan over 10,", None, 5, 1.2, 0.8),
        ("configs over ", None, 0.4, 0.5, None),
        ("explain over ", None, 0.25, 0.3, None),
        ("recovery of 9", None, 8, 20, 10),
        ("a log manager", None, 2, 5, 4),
        ("a log manager", None, 90, 500, 300),
        ("tables: appen", None, 2.5, 2, 4),
        ("tables: read,", None, 1.5, 2, 4),
        ("engine, 1 KB ", None, 0.5, 1 / 5, 1),
        ("CPU seconds o", None, 1.5, 1.25, None),
        ("swap, 1 a gro", None, 0, 20, 5),
    ]
    assert list(goals(Results({}))) == []


def test_growth_is_of_cpu_seconds_per_gigabyte() -> None:
    less = results(log_result("100b-0.8gb", 1_000), log_result("100b-4gb", 1_250))
    more = results(log_result("100b-0.8gb", 1_000), log_result("100b-4gb", 800))
    assert growth_percent(less, "warm", GROWTH_PAIRS[0]) == pytest.approx(-20)
    assert growth_percent(more, "warm", GROWTH_PAIRS[0]) == pytest.approx(25)
    assert growth_percent(more, "warm", GROWTH_PAIRS[1]) is None
    assert [g.rating() for g in goals(more) if "per GB" in g.what] == ["missed"] * 2
    assert [g.rating() for g in goals(less) if "per GB" in g.what] == ["aim reached"] * 2


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
    assert segments_ratio(run, "warm") == segments_ratio(run, "local") == 2
    held = {g.engine: g.rating() for g in goals(run) if "7-segments" in g.what}
    assert held == {"local": "missed", "spark": "missed"}
    assert segments_ratio(results(), "local") is None


def test_a_peak_is_of_the_sides_of_one_engine() -> None:
    log = log_result()
    log.memory["local-cold"] = {DRIVER: Peak(rss_bytes=310 * MIB)}
    held = {g.engine: g.measured for g in goals(results(log)) if g.what.startswith("driver")}
    assert held == {"local": 310, "spark": 200}
