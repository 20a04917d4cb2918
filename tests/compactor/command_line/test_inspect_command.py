"""`inspect`, as a person and a script see it."""

from pathlib import Path

import pytest

from compactor.inspection.inspection import HeavyKey
from compactor.views import inspection_table
from storage.formats import meta_properties
from storage.formats.meta_properties import MetaProperties
from tests.support.local_command import run_command, use_local_rounds
from tests.support.made_log import keyed, log_of, make_partition


@pytest.fixture
def log_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_local_rounds(monkeypatch, tmp_path / "work")
    make_partition(tmp_path / "kafka", {0: [keyed(0, "abaC")], 4: [keyed(4, "d")]})
    return tmp_path / "kafka"


def test_a_few_logs_are_shown_with_all_that_there_is_to_say(log_dir: Path) -> None:
    ended = run_command("inspect", log_dir, "orders-0", "--set", "cleanup.policy=compact")
    assert ended.code == 0, ended.error
    for words in (
        "4, 3 of them live",
        "1 of 5 records with a key",
        "1 without a delete horizon",
    ):
        assert words in ended.out
    assert ended.summary["status"] == "ok"
    assert "  a round would  clean it\n" in ended.out


def test_logs_of_several_directories(log_dir: Path) -> None:
    """Each by the settings and the dirty part of its own broker, with its directory in JSON."""
    more = log_dir.parent / "more"
    make_partition(more, {0: [keyed(0, "aaa")]}, "payments-0")
    ended = run_command("inspect", log_dir, more, "--format", "json")
    assert ended.code == 0, ended.error
    found = [(log["log_dir"], log["topic"], log["records"]) for log in ended.summary["logs"]]
    assert found == [(str(log_dir), "orders", 5), (str(more), "payments", 3)]
    ended = run_command("inspect", log_dir, more, "payments-0", "--format", "json")
    assert [log["topic"] for log in ended.summary["logs"]] == ["payments"]


def test_logs_of_one_name_are_told_apart_by_their_directory(log_dir: Path) -> None:
    """As of two brokers."""
    more = log_dir.parent / "more"
    make_partition(more, {0: [keyed(0, "aaa")]})
    for node_id, path in enumerate((log_dir, more), start=1):
        meta_properties.write(str(path), MetaProperties(1, f"cluster-{node_id}", node_id, None))
    ended = run_command("inspect", log_dir, more)
    assert ended.code == 0, ended.error
    for path, keys in ((log_dir, "4, 3 of them live"), (more, "1, 1 of them live")):
        _, details = ended.out.split(f"\norders-0 in {path}\n")[-2:]
        assert keys in details.split("versions")[0]


def test_what_a_round_would_do_goes_on_in_words(log_dir: Path) -> None:
    ended = run_command("inspect", log_dir, "orders-0")
    assert "  a round would  pass it over: cleanup.policy is not known" in ended.out, ended.error


def test_keys_are_shown_whole_however_long_they_are() -> None:
    """A name is not shortened; only what is longer than two names may be is cut, and says so."""
    names = "k" * 249, "k" * 700
    shown = "\n".join(_shown_keys([HeavyKey(name, False, 2, 20, 7) for name in names], 80))
    assert f"  {names[0]}\n" in shown
    assert f"  {'k' * 600}… and 100 characters more\n" in shown
    assert [line.split() for line in shown.splitlines() if line.endswith("7")] == [
        ["2", "20", "B", "7"]
    ] * 2


def _shown_keys(keys: list[HeavyKey], width: int) -> list[str]:
    return [line.plain for line in inspection_table._key_table("keys", keys, width)]


def test_a_script_gets_every_count(log_dir: Path) -> None:
    ended = run_command("inspect", log_dir, "--format", "json")
    (log,) = ended.summary["logs"]
    assert log["topic"] == "orders" and log["keys"]["duplicates"] == 1
    assert log["kinds"] == [
        {"format": "v2", "codec": "none", "batches": 2, "bytes": log["bytes"], "records": 5}
    ]
    assert log["most_versions"][0] == {
        "key": "a", "is_hex": False, "versions": 2, "bytes": 20, "latest_offset": 2
    }  # fmt: skip


def test_a_log_that_is_damaged_has_a_problem_and_the_others_are_told(log_dir: Path) -> None:
    other = make_partition(log_dir.parent / "more", {0: [keyed(0, "ab")]}, "payments-0")
    other.rename(log_dir / "payments-0")
    path = log_of(log_dir / "payments-0", 0)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    ended = run_command("inspect", log_dir, "--format", "json")
    assert ended.code == 4
    sound, damaged = ended.summary["logs"]
    assert sound["problem"] is None and sound["records"] == 5
    assert "checksum" in damaged["problem"] and str(path) in damaged["problem"]


def test_a_log_that_is_not_there_is_refused_by_its_name(log_dir: Path) -> None:
    ended = run_command("inspect", log_dir, "orders-1")
    assert ended.code == 2
    assert "orders-1: there is no such partition" in ended.error
