"""Logs of a running manager, cleaned beside appends and reads, to the bytes of Kafka's cleaner."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor import api
from storage.formats import checkpoint
from storage.log import LogManager, ManagerOptions
from storage.log.engine.scheduler import ManualScheduler
from storage.log.manager.manager_options import BY_HAND
from tests.conformance.fleet import Kafkas
from tests.golden import corpora
from tests.golden.copies import golden_log, topic_of, write_copies
from tests.storage.log.engine.batches_for_tests import batch
from tests.support.local_command import use_local_rounds

NOW_MS = corpora.now_ms()
KINDS = (".log", ".index", ".timeindex", ".txnindex")


def is_for_a_broker(name: str) -> bool:
    """Cleaned by Kafka, in log directories as a broker has them, without retention."""
    kinds = ("random-", "txn-", "everything-", "legacy-")
    policy = golden_log(name).config.get("cleanup.policy", "compact")
    return (
        name.startswith(kinds)
        and corpora.outcomes()[name] is Kafkas.CLEANED
        and policy == "compact"
    )


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogManager]:
    """Of some golden logs; rounds run in this process, without Spark."""
    use_local_rounds(monkeypatch, tmp_path / "rounds")
    names = [name for name in corpora.partitions() if is_for_a_broker(name)][::9]
    logs = {name: golden_log(name) for name in names}
    write_copies(tmp_path / "data", logs)
    (tmp_path / "work").mkdir()
    options = ManagerOptions(
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
        topic_settings={
            topic_of(name): {"cleanup.policy": "compact"} | log.config for name, log in logs.items()
        },
        intervals=BY_HAND,
    )
    cleaner = api.Cleaner(str(tmp_path / "work"))
    with LogManager([str(tmp_path / "data")], options, cleaner) as made:
        for name, log in logs.items():
            ours = made.logs[topic_of(name), 0]
            ours.update_high_watermark(log.offsets[checkpoint.REPLICATION])
        yield made


def closed_segments(path: Path, active_base: int) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes()
        for file in path.iterdir()
        if file.suffix in KINDS and int(file.stem) < active_base
    }


def test_what_a_manager_has_cleaned_has_kafkas_bytes(manager: LogManager, tmp_path: Path) -> None:
    """C-15.1, of logs that are open; and the checkpoint says so."""
    assert sorted(manager.clean_logs()) == sorted(manager.logs)
    fleet = corpora.extracted()
    checkpoints = checkpoint.read(str(tmp_path / "data" / checkpoint.CLEANER_OFFSET))
    expected = json.loads((fleet.root / "fleet.json").read_text())["results"]
    for partition, log in manager.logs.items():
        name = f"{partition[0]}-{partition[1]}"
        active = log.segments[-1].base_offset
        found = closed_segments(Path(log.path), active)
        assert found == closed_segments(fleet.after / name, active), name
        assert checkpoints[partition] == expected[name]["end_offset"]
    assert list((tmp_path / "work").iterdir()) == []


def test_a_log_that_was_cleaned_is_appended_to_and_read_on(manager: LogManager) -> None:
    partition, log = next(iter(manager.logs.items()))
    end, reading = log.log_end_offset, log.read(log.log_start_offset)
    before = reading.read()
    assert partition in manager.clean_logs()
    assert reading.read() == before  # it was begun before the swap
    log.append_as_leader(batch(0, NOW_MS))
    assert (log.log_end_offset, log.read(end).metadata.offset) == (end + 1, end)
    assert log.read(log.log_start_offset).read() != before
    bases = [segment.base_offset for segment in log.segments]
    manager.close()
    manager.start()
    assert [segment.base_offset for segment in manager.logs[partition].segments] == bases


def test_a_paused_log_is_left_alone(manager: LogManager) -> None:
    paused = next(iter(manager.logs))
    manager.pause_cleaning(paused)
    assert paused not in manager.clean_logs()
    manager.resume_cleaning(paused)
    assert manager.clean_logs() == [paused]
