"""What the words of the command line may be; a refusal names the option and what it was given."""

import re
from pathlib import Path

import pytest

from compactor.command_line import shared_options as operands
from compactor.errors import UsageError
from compactor.settings import options


@pytest.mark.parametrize("text", ["a", "=1", " =1", ""])
def test_a_setting_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UsageError, match="expected NAME=VALUE"):
        options.setting("--set", text)


def test_a_setting_may_have_an_empty_value_or_an_equals_sign() -> None:
    assert options.setting("--set", "cleanup.policy=") == ("cleanup.policy", "")
    assert options.setting("--set", " a = b=c ") == ("a", "b=c")


@pytest.mark.parametrize(
    "url",
    ["local", "local[2]", "local[*]", "local[4,3]", "spark://h:7077", "k8s://https://h", "yarn"],
)
def test_known_masters(url: str) -> None:
    assert options.master("--master", url) == url


@pytest.mark.parametrize(
    "url", ["", "local[0]", "local[-1]", "local[two]", "local[99999]", "h:7077"]
)
def test_unknown_masters(url: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        options.master("--master", url)


def test_a_last_word_that_is_no_directory_is_a_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    for words, expected in (
        (["data"], (("data",), None)),
        (["no-such"], (("no-such",), None)),  # a directory that is missing is told as one
        (["data", "orders"], (("data",), "orders")),
        (["one", "data"], (("one", "data"), None)),
        (["data", "./orders"], (("data", "./orders"), None)),
        (["data", "/mnt", "orders"], (("data", "/mnt"), "orders")),
    ):
        assert operands.log_dirs_and_topic(words) == expected


def test_a_word_is_a_partition_where_a_directory_before_it_holds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data/orders-7", "disk-1/logs", "disk-1/disk-2", "disk-2", "logs"):
        (tmp_path / name).mkdir(parents=True)
    for words, log_dirs, partitions in (
        ("data", "data", ""),
        ("data disk-1", "data disk-1", ""),  # a name like a partition's, which none holds
        ("data orders-7", "data", "orders-7"),
        ("data orders-7 disk-1", "data disk-1", "orders-7"),
        ("orders-7 data", "orders-7 data", ""),  # the first one is a directory, there or not
        ("disk-1 disk-2", "disk-1", "disk-2"),  # both: it is the partition of disk-1
        ("disk-1 ./disk-2", "disk-1 ./disk-2", ""),
        ("disk-1 logs", "disk-1 logs", ""),  # no name of a partition
        ("data order-7", "data", "order-7"),  # a typing error: it is neither
        ("data /none/order-7", "data /none/order-7", ""),
    ):
        expected = tuple(log_dirs.split()), tuple(partitions.split())
        assert operands.log_dirs_and_partitions(words.split()) == expected, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200MB/s", 200_000_000), ("1.5GB", None), ("2 gb/s", 2 * 10**9), ("1000000", 10**6)],
)
def test_a_rate(text: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match=r"expected 1MB/s or more, like 200MB/s"):
            options.rate_bytes("--io-limit", text)
    else:
        assert options.rate_bytes("--io-limit", text) == expected


@pytest.mark.parametrize("text", ["0", "999kB/s", "-1MB/s", "fast", "10MB/m", "/s"])
def test_a_rate_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--io-limit {text}: expected 1MB/s")):
        options.rate_bytes("--io-limit", text)
