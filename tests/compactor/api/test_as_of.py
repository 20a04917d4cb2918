"""The times that may be given for now."""

import pytest

from compactor.api.as_of import MAX_TIME_MS, as_of_ms
from compactor.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.5", 500),
        ("1970-01-02", 86_400_000),
        ("9999-12-31T23:59:59.999Z", MAX_TIME_MS),
    ],
)
def test_a_time_is_epoch_milliseconds_or_iso_8601(text: str, expected_ms: int) -> None:
    assert as_of_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", "yesterday", "1.5", "2026-13-01", "12:00", "0x10", "١٢"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match=r"as_of .*expected epoch milliseconds or ISO 8601"):
        as_of_ms(text)


@pytest.mark.parametrize("text", ["-1", "253402300800000", "9" * 40, "1969-12-31T23:59:59Z"])
def test_a_time_that_no_log_has(text: str) -> None:
    with pytest.raises(UsageError, match="outside of the years 1970 to 9999"):
        as_of_ms(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1700000000000000", "are those microseconds?"),
        ("1700000000000999", "are those microseconds?"),
        ("1700000000000000000", "are those nanoseconds?"),
    ],
)
def test_the_error_for_a_time_in_finer_units_gives_milliseconds(text: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        as_of_ms(text)
    assert str(raised.value) == (
        f"as_of {text}: outside of the years 1970 to 9999; {meant} In milliseconds "
        "2023-11-14T22:13:20.000Z is 1700000000000"
    )
