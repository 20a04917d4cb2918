"""Medians and ratios by hand; JSON and back."""

import pytest

from tests.bench.results import Peak, Ratio, Results, from_json, medians, merged, to_json
from tests.bench.samples import log_result, results


def test_medians_are_of_the_turns() -> None:
    log = log_result()
    assert [log.seconds(side) for side in ("kafka", "cp", "cold", "warm")] == [10, 1, 8, 2]
    assert log.cpu_seconds("warm") == 3
    assert log.cpu_seconds_per_gb("warm") == 6


def test_a_ratio_is_of_the_medians_and_its_range_of_single_turns() -> None:
    assert log_result().ratio("kafka", "warm") == Ratio(5, least=3, most=10)


def test_a_side_without_a_turn_has_no_numbers() -> None:
    log = log_result()
    del log.samples["warm"]
    assert log.seconds("warm") is None
    assert log.cpu_seconds_per_gb("warm") is None
    assert log.ratio("kafka", "warm") is None


def test_medians_of_each_key() -> None:
    rows = [{"scan": 1.0, "swap": 5.0}, {"scan": 3.0}, {"scan": 2.0, "swap": 7.0}]
    assert medians(rows) == {"scan": 2, "swap": 5}
    assert medians([]) == {}


def test_peaks_join_field_by_field() -> None:
    assert Peak(1, 5, 3).or_more(Peak(2, 4, 3)) == Peak(2, 5, 3)


def test_json_holds_everything() -> None:
    for run in (results(), Results({}), results(quick=True)):
        assert from_json(to_json(run)) == run


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 0}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"schema version|Expecting value"):
        from_json(text)


def test_of_a_log_measured_twice_the_later_counts() -> None:
    first = results(log_result("a", 1), log_result("b", 2))
    later = Results({"machine": "another"}, logs=(log_result("c", 3), log_result("a", 4)))
    both = merged([first, later])
    assert [(log.name, log.log_bytes) for log in both.logs] == [("a", 4), ("b", 2), ("c", 3)]
    assert both.plan == first.plan
    assert both.machine == {"machine": "another"}


def test_a_quick_run_among_others_is_not_forgotten() -> None:
    assert merged([results(quick=True), results()]).quick
    assert not merged([results(), results()]).quick
