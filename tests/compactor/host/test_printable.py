"""Nothing that a name brings along reaches the terminal as anything but characters that print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.host.printable import (
    duration_text,
    iso_time,
    one_line,
    printable,
    size_text,
    span_text,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-7", "orders-7"),
        ("größe-1", "größe-1"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),  # would clear the screen
        ("a\rb", "a\\rb"),  # would hide what stands before it
        ("a\nb", "a\\nb"),
        ("a\u202eb", "a\\u202eb"),  # would reverse what follows
        ("a\x9bb", "a\\x9bb"),  # an escape sequence in one byte
        ("a\udcffb", "a\\udcffb"),  # a byte of a file name that is not UTF-8
    ],
)
def test_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(codec=None)))
def test_everything_shown_prints_and_can_be_encoded(text: str) -> None:
    assert printable(text).isprintable()
    assert one_line(text).isprintable()
    printable(text).encode()


def test_lines_become_one() -> None:
    assert one_line("first \n  second\r\n\nthird") == "first second third"


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (12_345_678, "12.3 MB"),
        (5 * 10**11, "500.0 GB"),
        (2 * 10**15, "2.0 PB"),
        (7 * 10**18, "7,000 PB"),
    ],
)
def test_sizes_are_decimal(size_bytes: int, shown: str) -> None:
    assert size_text(size_bytes) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (300_001, "300 s"),
        (599_999, "599 s"),
        (600_000, "10 min"),
        (35_999_999, "599 min"),
        (36_000_000, "10 h"),
        (863_999_999, "239 h"),
        (864_000_000, "10 days"),
        (1_793_541_930_000, "20,758 days"),
    ],
)
def test_a_length_of_time_has_two_figures_at_least(ms: int, shown: str) -> None:
    assert span_text(ms) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 s"),
        (1, "0.001 s"),
        (500, "0.5 s"),
        (9_999, "9.999 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (998_000, "16 min 38 s"),
        (5_400_000, "1 h 30 min"),
        (86_400_000, "1 day"),
        (604_800_000, "7 days"),
        (90_000_000, "1 day 1 h"),
    ],
)
def test_a_duration_is_exact_to_its_second_unit(ms: int, shown: str) -> None:
    assert duration_text(ms) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (-62_135_596_800_001, "-62135596800001"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000"),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_a_time_is_that_of_a_calendar_or_the_number(ms: int, shown: str) -> None:
    assert iso_time(ms) == shown


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_time_is_exact_to_the_millisecond(ms: int) -> None:
    shown = iso_time(ms)
    seconds = ms % 86_400_000 // 1000
    of_day = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms % 1000:03}Z"
    assert shown.partition("T")[2] == of_day
