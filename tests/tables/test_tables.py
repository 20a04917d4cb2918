"""A sample of the campaign, with the readers that are installed here, and what it notices."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.tables.campaign import ZONES, problems, time_zone
from tests.tables.readers import differences, plain
from tests.tables.spark_reader import spark_session


@pytest.mark.parametrize(("number", "zone"), [*enumerate(ZONES)])
def test_random_logs_come_as_dump_shows_them(tmp_path: Path, number: int, zone: str) -> None:
    with time_zone(zone):
        assert problems(tmp_path, 1000 + 20 * number, 20) == []


@pytest.mark.spark
def test_random_logs_come_in_spark_as_dump_shows_them(tmp_path: Path) -> None:
    with time_zone("Pacific/Kiritimati"), spark_session() as session:
        assert problems(tmp_path, 2000, 12, session) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offset", 6),
        ("offset", 5.5),
        ("offset", None),
        ("key", ""),
        ("timestamp", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("headers", []),
    ],
)
def test_a_value_that_differs_is_noticed(name: str, value: Any) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC)
    right = {"offset": 5, "key": b"", "timestamp": moment, "headers": [("a", None)]}
    assert differences(plain([{**right, "headers": [{"key": "a", "value": None}]}]), [right]) == []
    [wrong] = differences([{**right, name: value}], [right])
    assert wrong.startswith(f"offset 5, {name}: ")


def test_a_record_or_a_column_that_is_missing_is_noticed() -> None:
    assert differences([], [{"offset": 5}]) == ["0 records, expected 1"]
    assert differences([{"offset": 5}], [{"offset": 5, "key": b""}]) == ["columns offset"]
