"""Medians and ratios by hand; JSON and back."""

import pytest

from tests.bench.results import Results, from_json, merged, to_json
from tests.bench.samples import log_result, results


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
