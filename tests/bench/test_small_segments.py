"""The bench of small segments, small: it writes, reads and measures what it says."""

from pathlib import Path

import pytest

from tests.bench.results import BenchError
from tests.bench.small_segments import measure, timed


def test_each_line_has_what_it_must_reach(tmp_path: Path) -> None:
    found = measure(tmp_path, 30, 20, with_spark=False)
    assert [line.split("  ")[0] for line in found] == [
        "two columns", "Arrow", "Parquet", "Parquet, of the log",
    ]  # fmt: skip
    assert all("(at most " in line for line in found)
    assert len(list((tmp_path / "small" / "small-0").glob("*.log"))) == 30


def test_records_that_are_missing_are_an_error() -> None:
    with pytest.raises(BenchError, match="Arrow: 3 records, expected 4"):
        timed("Arrow", 15, lambda: 3, 4)
