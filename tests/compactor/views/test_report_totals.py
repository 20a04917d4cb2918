"""Sums, and many reasons told as a few."""

import pytest

from compactor.outcome.round_report import Counts, LogReport, LogStatus
from compactor.views.report_totals import group_reasons
from tests.compactor.rounds import COUNTS, log, report

PASSED, ASIDE, FAILED = LogStatus.PASSED_OVER, LogStatus.SET_ASIDE, LogStatus.FAILED


def test_totals_are_those_of_the_cleaned_logs() -> None:
    totals = report(log(0), log(1), log(2, PASSED, "x"), log(3, ASIDE, "y")).totals
    assert totals.logs == {
        LogStatus.CLEANED: 2,
        LogStatus.WOULD_CLEAN: 0,
        PASSED: 1,
        ASIDE: 1,
        FAILED: 0,
    }
    assert (totals.segments_before, totals.segments_after) == (14, 4)
    assert (totals.bytes_before, totals.bytes_after) == (10_000_000, 4_000_000)
    assert totals.counts == COUNTS + COUNTS


def test_an_empty_round_has_totals() -> None:
    assert report().totals.counts == Counts()


def grouped(*logs: LogReport) -> list[tuple[str, int]]:
    return [(group.reason, len(group.names)) for group in group_reasons(logs)]


def test_ten_thousand_logs_with_the_same_reason_are_one_line() -> None:
    logs = [log(n, PASSED, "cleanup.policy is delete") for n in range(10_000)]
    assert grouped(*logs) == [("cleanup.policy is delete", 10_000)]


def test_numbers_that_vary_become_a_range() -> None:
    logs = [
        log(n, PASSED, f"dirty ratio {ratio} is not above 0.5")
        for n, ratio in enumerate(["0.25", "0.1", "0.4", "0.25"])
    ]
    assert grouped(*logs) == [("dirty ratio 0.1…0.4 is not above 0.5", 4)]


def test_sizes_that_vary_become_a_range_whatever_their_units() -> None:
    sizes = ["79 B", "1.5 GB", "12.0 kB"]
    logs = [log(n, PASSED, f"{size} from offset {n} on wait") for n, size in enumerate(sizes)]
    assert grouped(*logs) == [("79 B…1.5 GB from offset 0…2 on wait", 3)]


def test_a_size_and_a_number_stay_apart() -> None:
    assert len(grouped(log(0, PASSED, "has 5 B"), log(1, PASSED, "has 5"))) == 2


def test_paths_and_names_of_the_logs_do_not_keep_them_apart() -> None:
    logs = [
        log(n, ASIDE, f"/data/orders-{n}/00{n}.log, byte {n * 10}: bad CRC in orders-{n}")
        for n in range(3)
    ]
    assert grouped(*logs) == [("…/000…002.log, byte 0…20: bad CRC in …", 3)]


def test_a_single_log_keeps_its_reason_as_it_is() -> None:
    assert grouped(log(4, ASIDE, "/data/orders-4/0.log, byte 17: bad")) == [
        ("/data/orders-4/0.log, byte 17: bad", 1)
    ]


def test_different_statuses_and_reasons_stay_apart_the_largest_group_first() -> None:
    logs = [log(0, FAILED, "a"), log(1, ASIDE, "a"), log(2, ASIDE, "b"), log(3, ASIDE, "b")]
    assert grouped(*logs) == [("b", 2), ("a", 1), ("a", 1)]


@pytest.mark.parametrize("reason", [None, ""])
def test_a_log_without_a_reason_is_shown_as_such(reason: str | None) -> None:
    assert grouped(log(0, PASSED, reason)) == [("no reason given", 1)]


def test_numbers_equal_in_value_are_not_a_range() -> None:
    assert grouped(log(0, PASSED, "lag 1.0 s"), log(1, PASSED, "lag 1 s")) == [("lag 1.0 s", 2)]
