"""`compactor log offsets`: every offset of a stopped log, and of one that is in use."""

import os
from pathlib import Path
from typing import Any

import pytest

from storage.files.local import LOCAL
from storage.formats import checkpoint
from tests.compactor.offline_log.made_logs import CLOCK_MS, SMALL, files_in, make
from tests.engine.replay.replayed import replayed
from tests.support.local_command import run_command

NAME = "orders-0"
EPOCHS = [(0, 0, 4), (3, 4, 8), (5, 8, 10)]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path / "log")


def offsets(log_dir: Path, *words: object) -> dict[str, Any]:
    ended = run_command("log", "offsets", log_dir, NAME, *words, "--format", "json")
    assert ended.code == 0, ended.error
    return ended.summary


def test_what_stands_where(made: Path) -> None:
    before = files_in(made)
    found = offsets(made)
    wanted = {
        "name": NAME, "log_start": 0, "high_watermark": 10, "is_high_watermark_known": True,
        "last_stable": 8, "log_end": 10, "recovery_point": 10, "cleaner": None,
        "has_clean_shutdown": True, "segments": 3, "size_bytes": 624, "hidden": [], "times": [],
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted
    assert [tuple(epoch.values()) for epoch in found["epochs"]] == EPOCHS
    assert found["open_transactions"] == [
        {"producer_id": 8, "producer_epoch": 2, "first_offset": 8,
         "last_timestamp_ms": CLOCK_MS - 1000}
    ]  # fmt: skip
    assert files_in(made) == before


@pytest.mark.parametrize(
    ("at", "offset"),
    [("0", 0), (str(CLOCK_MS - 3950), 2), (str(CLOCK_MS - 2000), 3), (str(CLOCK_MS + 1), None)],
)
def test_offsets_for_times(made: Path, at: str, offset: int | None) -> None:
    (found,) = offsets(made, "--at", at)["times"]
    assert (found["asked_ms"], found["offset"]) == (int(at), offset)


def test_checkpoints_are_what_counts(made: Path) -> None:
    checkpoint.write(str(made / checkpoint.LOG_START), {("orders", 0): 2})
    checkpoint.write(str(made / checkpoint.REPLICATION), {("orders", 0): 7})
    checkpoint.write(str(made / checkpoint.CLEANER_OFFSET), {("orders", 0): 4})
    found = offsets(made)
    assert (found["log_start"], found["high_watermark"], found["cleaner"]) == (2, 7, 4)
    assert found["last_stable"] == 7
    (made / checkpoint.REPLICATION).unlink()
    found = offsets(made)
    assert (found["high_watermark"], found["is_high_watermark_known"]) == (10, False)


def test_the_table_shows_them_all(made: Path) -> None:
    ended = run_command("log", "offsets", made, NAME, "--at", str(CLOCK_MS - 900))
    assert ended.code == 0
    for words in ("last stable offset      8", "producer 8", "log end                10"):
        assert words in ended.out


def test_a_log_in_use_is_looked_at_as_it_stands(tmp_path: Path) -> None:
    """Its active indexes are as long as they may get, and nobody has closed it."""
    log_dir = tmp_path / "log"
    replayed(LOCAL, str(log_dir), [*SMALL, {"op": "flush"}, {"op": "checkpoint"}])
    before = files_in(log_dir)
    ended = run_command("log", "offsets", log_dir, NAME, "--format", "json")
    assert (ended.code, ended.summary["log_end"], ended.summary["last_stable"]) == (0, 10, 8)
    assert "did not stop cleanly, or is running" in ended.error
    assert files_in(log_dir) == before


def test_a_torn_end_is_told_and_left(made: Path) -> None:
    path = made / NAME / "00000000000000000008.log"
    os.truncate(path, path.stat().st_size - 1)
    (made / ".kafka_cleanshutdown").unlink()
    before = files_in(made)
    ended = run_command("log", "offsets", made, NAME, "--format", "json")
    assert ended.summary["log_end"] == 9
    assert ended.summary["hidden"] == [str(path)]
    assert f"{path}: a broker that starts would cut off" in ended.error
    assert files_in(made) == before


def test_what_there_is_not(made: Path) -> None:
    ended = run_command("log", "offsets", made, "orders-9")
    assert (ended.code, f"there is no {made / 'orders-9'}" in ended.error) == (2, True)
    ended = run_command("log", "offsets", made, NAME, "--at", "noon")
    assert (ended.code, "--at noon: expected epoch milliseconds" in ended.error) == (2, True)
