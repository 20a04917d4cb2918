"""Cleanings that end otherwise than Kafka's: each for its reason of docs/differences.md, and no
other. Scripts up to the cleaning, with Kafka's transcripts."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor.outcome.round_report import LogReport
from storage.files.local import LOCAL
from tests.engine.other_cleanings import first_other_cleaning, without_leftovers
from tests.engine.replay.replayed import replayed
from tests.engine.transcripts import AS_BYTES, first_difference, lines_of

GOLDEN = Path(__file__).parents[1] / "golden" / "engine" / "other_cleanings"
REASONS = {
    "310073": "a full index",
    "310513": "no empty form of a last batch of v0 or v1",
    "310383": "aborted transactions, where the log start is below the first segment",
    "310615": "offsets that overlap or go backwards",
    "310017": "offsets that overlap or go backwards",
    "310503": "bytes that are no whole batch",
    "310839": "a wrong checksum",
    "72000186": "records that do not decompress",
    "74000159": "a wrapper whose lengths do not fit it",
    "310894": "an index that its log contradicts",
}
Lines = list[dict[str, Any]]


def both(name: str, tmp_path: Path) -> tuple[Lines, Lines, dict[int, LogReport]]:
    script, kafkas = (
        lines_of(gzip.decompress((GOLDEN / f"{name}.{kind}.jsonl.gz").read_bytes()).decode())
        for kind in ("script", "transcript")
    )
    reports: dict[int, LogReport] = {}
    return kafkas, replayed(LOCAL, str(tmp_path / "log"), script, reports), reports


@pytest.mark.parametrize("name", REASONS)
def test_only_the_cleaning_differs_and_for_its_reason(name: str, tmp_path: Path) -> None:
    kafkas, ours, reports = both(name, tmp_path)
    last = len(kafkas) - 1
    assert first_other_cleaning(kafkas, ours, reports) == (last, REASONS[name])
    assert first_difference(kafkas[:last], ours[:last], AS_BYTES) is None
    assert first_difference(kafkas, ours, AS_BYTES) is not None


def test_records_of_aborted_transactions_supersede_nothing(tmp_path: Path) -> None:
    kafkas, ours, _ = both("310383", tmp_path)
    kept = [lines[-1]["result"]["messages_written"] for lines in (kafkas, ours)]
    assert kept == [14, 15]  # with Kafka, a committed record is lost to one that was aborted


@pytest.mark.parametrize("name", ["310073", "310513", "310615", "310503"])
def test_without_its_reason_in_our_report_it_is_a_difference(name: str, tmp_path: Path) -> None:
    kafkas, ours, reports = both(name, tmp_path)
    number = max(reports)
    reports[number] = replace(reports[number], notes=("something else",), reason="another reason")
    assert first_other_cleaning(kafkas, ours, reports) is None


@pytest.mark.parametrize("name", ["310073", "310513", "310615", "310503"])
def test_with_another_error_of_kafkas_it_is_a_difference(name: str, tmp_path: Path) -> None:
    kafkas, ours, reports = both(name, tmp_path)
    kafkas[-1] = {**kafkas[-1], "error": "KafkaException"}
    assert first_other_cleaning(kafkas, ours, reports) is None


def test_what_kafkas_cleaner_leaves_where_both_stop_is_left_out_of_account(tmp_path: Path) -> None:
    """With one error for both, only the file that Kafka's had begun to write tells them apart."""
    kafkas, ours, reports = both("leftover", tmp_path)
    assert first_other_cleaning(kafkas, ours, reports) is None
    found = without_leftovers(kafkas, ours, reports)
    assert first_difference(found, ours, AS_BYTES) is None
    names = [[file["name"] for file in line["result"]] for line in (kafkas[-3], found[-3])]
    assert [*{*names[0]} - {*names[1]}] == [f"t-0/{0:020}.log.cleaned"]
    assert found[-1] == kafkas[-1]  # by then, the log has been opened again
    assert without_leftovers(kafkas, ours, {}) == kafkas
