"""Logs of a running manager, cleaned beside appends and reads, to the bytes of Kafka's cleaner."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compactor import LogManager, ManagerOptions, api
from storage.log.manager_options import BY_HAND
from storage.log.scheduler import ManualScheduler
from tests.golden.copies import golden_log, write_copies
from tests.golden.managed import (
    NOW_MS,
    active_bases,
    names_for_a_broker,
    replicate,
    require_kafkas_bytes,
    settings_of,
)
from tests.storage.log.batches_for_tests import batch
from tests.support.local_command import use_local_rounds


def options_for(names: list[str]) -> ManagerOptions:
    """Of a manager that does nothing by itself."""
    return ManagerOptions(
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
        topic_settings=settings_of(names),
        intervals=BY_HAND,
    )


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogManager]:
    """Of some golden logs; rounds run in this process, without Spark."""
    names = names_for_a_broker()[::9]
    use_local_rounds(monkeypatch, tmp_path / "rounds")
    write_copies(tmp_path / "data", {name: golden_log(name) for name in names})
    (tmp_path / "work").mkdir()
    options = options_for(names)
    cleaner = api.Cleaner(str(tmp_path / "work"), kafka="4.3")  # which wrote the golden logs
    with LogManager([str(tmp_path / "data")], options, cleaner) as made:
        replicate(made, names)
        yield made


@pytest.mark.older_codecs
def test_what_a_manager_has_cleaned_has_kafkas_bytes(manager: LogManager, tmp_path: Path) -> None:
    """C-15.1, of logs that are open; and the checkpoint says so."""
    assert sorted(manager.clean_logs()) == sorted(manager.logs)
    require_kafkas_bytes(manager, tmp_path / "data", active_bases(manager))
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


@pytest.mark.parametrize("count", [None, 2])
def test_rounds_run_on_an_engine_as_those_of_run_do(tmp_path: Path, count: int | None) -> None:
    """count: of workers that the caller keeps; None: the round starts its own."""
    names = names_for_a_broker()[::40]
    write_copies(tmp_path / "data", {name: golden_log(name) for name in names})
    (tmp_path / "work").mkdir()
    options = options_for(names)
    reports: list[api.CleaningReport] = []
    with ExitStack() as kept:
        workers = None if count is None else kept.enter_context(api.Workers(count))
        cleaner = api.Cleaner(
            tmp_path / "work", api.RunOptions(workers=workers), reports.append, kafka="4.3"
        )
        with LogManager([str(tmp_path / "data")], options, cleaner) as made:
            replicate(made, names)
            assert sorted(made.clean_logs()) == sorted(made.logs)
    [report] = reports
    assert report.engine is not None and report.engine.name == "local"
    why = "of logs to read, less than 1 GiB" if count is None else "workers were passed in"
    assert report.engine.why.endswith(why)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_paused_log_is_left_alone(manager: LogManager) -> None:
    paused = next(iter(manager.logs))
    manager.pause_cleaning(paused)
    assert paused not in manager.clean_logs()
    manager.resume_cleaning(paused)
    assert manager.clean_logs() == [paused]


def test_a_replica_of_a_cleaned_leader_is_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has begun a segment where the leader had no more of what was between: nothing is missing,
    whatever keys it holds twice before."""
    use_local_rounds(monkeypatch, tmp_path / "rounds")
    for name in ("data", "work"):
        (tmp_path / name).mkdir()
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    settings["segment.bytes"] = "100"  # of which a batch of two records takes 79
    options = ManagerOptions(
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
        topic_settings={"t": settings},
        intervals=BY_HAND,
    )
    cleaner = api.Cleaner(str(tmp_path / "work"))
    with LogManager([str(tmp_path / "data")], options, cleaner) as manager:
        log = manager.create(("t", 0))
        log.append_as_follower(batch(0, NOW_MS, NOW_MS), 0)
        log.append_as_follower(batch(100, NOW_MS), 0)
        log.roll()
        assert [segment.base_offset for segment in log.segments] == [0, 100, 101]
        log.update_high_watermark(log.log_end_offset)
        assert manager.clean_logs() == [("t", 0)]
        kept = [record.offset for each in log.read(0).batches() for record in each.records()]
        assert kept == [100]
