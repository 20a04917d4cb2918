"""File and directory names, spec F-1.2 to F-2.5."""

import pytest

from storage.file_names import (
    CLEANED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    is_offset,
    is_special_dir,
    offset_of,
    parse_future_dir,
    parse_partition_dir,
)

UUID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("offset", "suffix", "name"),
    [
        (0, LOG, "00000000000000000000.log"),
        (42, TIME_INDEX + SWAP, "00000000000000000042.timeindex.swap"),
        (42, INDEX + CLEANED, "00000000000000000042.index.cleaned"),
        (7, TXN_INDEX, "00000000000000000007.txnindex"),
        (2**63 - 1, SNAPSHOT, "09223372036854775807.snapshot"),
    ],
)
def test_a_file_is_named_by_twenty_digits_and_its_suffixes(
    offset: int, suffix: str, name: str
) -> None:  # F-2.1, F-2.2
    assert file_name(offset, suffix) == name
    assert offset_of(name) == offset


@pytest.mark.parametrize(
    "name", ["", "log", ".log", "abc.log", "12", "-5.log", "+5.log", "1 2.log", "٣.log", "1_0.log"]
)
def test_a_name_without_digits_before_its_first_dot_has_no_offset(
    name: str,
) -> None:  # F-2.3, F-2.5
    assert offset_of(name) is None


@pytest.mark.parametrize(
    ("digits", "is_one"),
    [
        ("00000000000000000000", True),
        ("09223372036854775807", True),
        ("09223372036854775808", False),
        ("99999999999999999999", False),
        ("0000000000000000000", False),
        ("000000000000000000000", False),
        ("0000000000000000000٣", False),
        ("0000000000000000000²", False),
        ("-0000000000000000001", False),
        (" 0000000000000000001", False),
    ],
)
def test_twenty_digits_are_those_of_an_offset_of_64_bits(digits: str, is_one: bool) -> None:
    assert is_offset(digits) == is_one


def test_an_offset_is_a_64_bit_integer() -> None:
    assert offset_of("9223372036854775807.log") == 2**63 - 1
    assert offset_of("9223372036854775808.log") is None


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("t-0", "t", 0),
        ("my-topic-12", "my-topic", 12),
        ("a.b_c-2147483647", "a.b_c", 2**31 - 1),
        ("--0", "-", 0),
        ("t.x-delete-3", "t.x-delete", 3),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
    ],
)
def test_a_partition_directory_is_split_at_its_last_dash(
    name: str, topic: str, partition: int
) -> None:  # F-1.2
    assert parse_partition_dir(name) == (topic, partition)


@pytest.mark.parametrize(
    "name",
    ["", "t", "-0", "t-", "t-x", "t-2147483648", "t-+5", "t-07", "t-1 ", "t-٣", "lost+found"],
)
def test_other_names_are_no_partition(name: str) -> None:  # F-1.4
    assert parse_partition_dir(name) is None
    assert not is_special_dir(name)


@pytest.mark.parametrize("state", ["delete", "future", "stray"])
def test_special_directories_are_known_and_are_no_partition(state: str) -> None:  # F-1.3
    name = f"my-topic-3.{UUID}-{state}"
    assert is_special_dir(name)
    assert parse_partition_dir(name) is None


@pytest.mark.parametrize(
    "name", ["delete", "t-delete", "t-0-delete", "t 1-0.x-delete", "t-0.x-gone"]
)
def test_a_special_directory_needs_partition_dot_id_and_state(name: str) -> None:  # F-1.3
    assert not is_special_dir(name)


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        (f"my-topic-3.{UUID}-future", ("my-topic", 3)),
        (f"my.topic-3.{UUID}-future", ("my.topic", 3)),  # the text before the last dot
        (f"t-0.x-1.{UUID}-future", ("t-0.x", 1)),
        (f"my-topic-3.{UUID}-delete", None),
        (f"my-topic-3.{UUID}-stray", None),
        (f"my-topic-x.{UUID}-future", None),
        ("my-topic-3", None),
        ("t-0-future", None),
    ],
)
def test_a_log_on_its_way_to_another_log_directory_is_known(
    name: str, moved: tuple[str, int] | None
) -> None:  # F-1.3
    assert parse_future_dir(name) == moved
