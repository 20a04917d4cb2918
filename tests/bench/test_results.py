"""Medians and ratios by hand; JSON and back."""

import pytest

from tests.bench.results import Peak, Ratio, Results, Sample, from_json, medians, merged, to_json
from tests.bench.samples import log_result, results


def test_medians_and_ratios_are_of_the_turns() -> None:
    log = log_result()
    sides = ("kafka", "cp", "cold", "warm")
    assert [log.middle(s) for s in sides] == [Sample(10, 12), Sample(1, 1), Sample(8, 10), (2, 3)]
    assert log.cpu_seconds_per_gb("warm") == 6
    assert log.ratio("kafka", "warm") == Ratio(5, least=3, most=10)
    del log.samples["warm"]  # a side without a turn has no numbers
    found = log.middle("warm"), log.cpu_seconds_per_gb("warm"), log.ratio("kafka", "warm")
    assert found == (None, None, None)


def test_medians_of_each_key() -> None:
    rows = [{"scan": 1.0, "swap": 5.0}, {"scan": 3.0}, {"scan": 2.0, "swap": 7.0}]
    assert medians(rows) == {"scan": 2, "swap": 5}
    assert medians([]) == {}
    assert Peak(1, 5, 3).or_more(Peak(2, 4, 3)) == Peak(2, 5, 3)


def test_json_holds_everything() -> None:
    for run in (results(), Results({}), results(quick=True)):
        assert from_json(to_json(run)) == run


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 0}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"schema version|Expecting value"):
        from_json(text)


def test_of_what_is_measured_twice_the_later_counts() -> None:
    first = results(log_result("a", 1), log_result("b", 2), quick=True)
    later = Results({"machine": "another"}, logs=(log_result("c", 3), log_result("a", 4)))
    both = merged([first, later])
    assert [(log.name, log.log_bytes) for log in both.logs] == [("a", 4), ("b", 2), ("c", 3)]
    assert both.plan == first.plan
    assert both.machine == {"machine": "another"}
    assert both.quick, "a quick run among others is not forgotten"
    assert not merged([results(), results()]).quick
