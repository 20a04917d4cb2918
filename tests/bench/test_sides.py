"""What the sides answered is read and held against each other; nobody cleans anything here."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from compactor.planning.round_plan import plan_round
from compactor.recovery.log_dir_recovery import recover_log_dir
from compactor.settings.config import load_config
from tests.bench import (
    built_logs,
    cold_side,
    engine_side,
    kafka_side,
    open_side,
    recover_side,
    scratch,
    swap_side,
    tables_side,
    turns,
    warm_side,
)
from tests.bench.errors import BenchError
from tests.bench.plan_side import SEGMENT_BYTES, write_fleet
from tests.bench.results import JVM, Outcome, Peak, Sample
from tests.bench.scratch import Scratch
from tests.bench.turns import Setup, measure
from tests.bench.workloads import (
    KAFKA,
    NOW_MS,
    TOPIC_CONFIG,
    Fleet,
    SwapShape,
    Workload,
)
from tests.oracle import kafka

KAFKAS = {
    "cleaned": True, "end_offset": 50, "first_uncleanable_offset": 50, "messages_read": 50,
    "messages_written": 20, "bytes_read": 5000, "bytes_written": 2000, "bytes_after": 2070,
}  # fmt: skip
OURS = {"status": "cleaned", "bytes_after": 2000, "records": {"read": 50, "kept": 20}}
OUTCOME = Outcome(bytes_after=2000, records_read=50, records_kept=20)


def test_both_tell_of_the_same_cleaning_alike() -> None:
    assert kafka_side.outcome(KAFKAS) == cold_side.outcome([OURS]) == OUTCOME


@pytest.mark.parametrize("changed", [{"cleaned": False}, {"end_offset": 49}])
def test_kafka_has_to_clean_the_whole_log(changed: dict[str, Any]) -> None:
    with pytest.raises(BenchError, match="did not clean the whole log"):
        kafka_side.outcome(KAFKAS | changed)


@pytest.mark.parametrize("status", ["would-clean", "passed-over", "set-aside", "failed"])
def test_ours_has_to_clean_the_log(status: str) -> None:
    with pytest.raises(BenchError, match=f"{status}, why"):
        cold_side.outcome([OURS | {"status": status, "reason": "why"}])


def test_the_fleet_is_planned_whole(tmp_path: Path) -> None:
    fleet = Fleet(partitions=3, segments_a_partition=4, partitions_a_topic=2)
    write_fleet(tmp_path / "log", fleet)
    plan = plan_round((str(tmp_path / "log"),), load_config(settings=TOPIC_CONFIG), NOW_MS)
    assert [log.name for log in plan.logs] == ["topic-000-0", "topic-000-1", "topic-001-0"]
    for log in plan.logs:
        assert [segment.log_bytes for group in log.groups for segment in group.segments] == [
            SEGMENT_BYTES
        ] * 3  # the active one is not among them
    assert plan.not_cleaned == ()
    assert sum(path.suffix == ".log" for path in (tmp_path / "log").rglob("*")) == fleet.segments


def test_what_a_killed_run_left_is_recovered(tmp_path: Path) -> None:
    """Of 51 partitions the first and the last are in a swap, every third one has a staged file."""
    fleet = Fleet(partitions=51, segments_a_partition=3, partitions_a_topic=100)
    write_fleet(tmp_path / "log", fleet)
    assert recover_side.leave(tmp_path / "log") == 18
    found = recover_log_dir(str(tmp_path / "log"))
    assert [log.problem for log in found.logs] == [None] * 18
    finished = [log.topic + f"-{log.partition}" for log in found.logs if log.finished]
    assert finished == ["topic-000-0", "topic-000-9"]  # 0 and 50 by name
    for name in finished:
        logs = sorted(path.name for path in (tmp_path / "log" / name).glob("*.log"))
        assert logs == ["00000000000000000000.log", "00000000000002000000.log"]
    assert recover_log_dir(str(tmp_path / "log")).logs == ()


def test_logs_are_opened_after_a_clean_shutdown(tmp_path: Path) -> None:
    fleet = Fleet(partitions=3, segments_a_partition=4, partitions_a_topic=2)
    (tmp_path / "logs").mkdir()
    result = open_side.measure(Scratch(tmp_path), fleet, 1)
    assert (result.partitions, result.segments, len(result.samples)) == (3, 12, 1)
    assert result.samples[0].seconds > 0


@pytest.mark.parametrize(("segments_a_group", "groups"), [(1, 7), (3, 3)])
def test_a_swap_is_of_all_groups(tmp_path: Path, segments_a_group: int, groups: int) -> None:
    shape = SwapShape(7, segments_a_group)
    plan, finished = swap_side.write(tmp_path / "log", shape)
    assert len(finished) == len(plan.groups) == groups
    (result,) = swap_side.measure(Scratch(tmp_path / "s"), [shape], 2)
    assert (result.segments, len(result.samples)) == (7, 2)
    assert not list((tmp_path / "s").rglob("*.log"))


class Sides:
    """Takes the place of all sides and notes their turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kept: dict[str, int]) -> None:
        self.turns: list[str] = []
        self.longer = ""  # the side that leaves a byte more
        self._kept, self._seconds = kept, itertools.count(1)
        for module, name in ((kafka_side, "kafka"), (cold_side, "cold"), (warm_side, "warm")):
            monkeypatch.setattr(module, "clean", getattr(self, f"_{name}"))
        monkeypatch.setattr(turns, "time_copy", lambda *_: self._sample("cp"))
        monkeypatch.setattr(turns, "settle", lambda: None)
        monkeypatch.setattr(built_logs, "log_dir_of", lambda *_: Path("log"))
        monkeypatch.setattr(built_logs, "log_bytes", lambda _: 5070)

    def _sample(self, side: str) -> Sample:
        self.turns.append(side)
        return Sample(float(next(self._seconds)), 1.0)

    def _outcome(self, side: str) -> Outcome:
        kept = self._kept.get(side, 20)
        return OUTCOME._replace(records_kept=kept, bytes_after=2000 + (side == self.longer))

    def _kafka(self, _log_dir: Path, warms_up: bool) -> kafka_side.KafkaTurn:
        assert warms_up == (not self.longer)
        return kafka_side.KafkaTurn(self._sample("kafka"), self._outcome("kafka"), len(self.turns))

    def _cold(self, *_: object, watch_memory: bool = False) -> cold_side.ColdTurn:
        sample = self._sample("cold, memory" if watch_memory else "cold")
        return cold_side.ColdTurn(sample, self._outcome("cold"), {JVM: Peak(watch_memory)})

    def _warm(self, *_: object, watch_memory: bool) -> warm_side.WarmTurn:
        sample = self._sample("warm, memory" if watch_memory else "warm")
        memory = {JVM: Peak(watch_memory)}
        return warm_side.WarmTurn(sample, self._outcome("warm"), 9, {JVM: 1}, {"scan": 2}, memory)


def setup(tmp_path: Path) -> Setup:
    return Setup(Scratch(tmp_path), "local[2]", 2, lambda _: None)


def test_sides_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sides = Sides(monkeypatch, {})
    log = measure(setup(tmp_path), Workload("x", 1, 1, 1, 100))
    assert sides.turns == [
        *("cp", "kafka", "cp", "cold", "warm"),
        *("kafka", "cp", "cold", "warm, memory", "cold, memory"),
    ]
    assert {side: [s.seconds for s in samples] for side, samples in log.samples.items()} == {
        "kafka": [2, 6], "cp": [3, 7], "cold": [4, 8], "warm": [5, 9],
    }  # fmt: skip
    assert (log.outcome, log.log_bytes, log.first_rounds) == (OUTCOME, 5070, [9, 9])
    assert log.memory == {
        "kafka": {JVM: Peak(6)}, "warm": {JVM: Peak(True)}, "cold": {JVM: Peak(True)},
    }  # fmt: skip


@pytest.mark.parametrize("side", ["cold", "warm"])
def test_a_side_that_leaves_something_else_stops_it(
    side: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Sides(monkeypatch, {side: 21})
    with pytest.raises(BenchError, match=f"x: {side} left .*records_kept=21.*not .*kept=20"):
        measure(setup(tmp_path), Workload("x", 1, 1, 1, 100))


def test_only_many_rounds_may_leave_other_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sides = Sides(monkeypatch, {})
    sides.longer = "kafka"
    log = measure(setup(tmp_path), Workload("x", 1, 1, 1, 100, many_rounds=True))
    assert log.outcome.bytes_after == 2000, "ours"
    sides = Sides(monkeypatch, {})
    monkeypatch.setattr(sides, "_outcome", lambda side: OUTCOME._replace(bytes_after=len(side)))
    with pytest.raises(BenchError, match=r"x: cold left .*bytes_after=4.*not .*bytes_after=5"):
        measure(setup(tmp_path), Workload("x", 1, 1, 1, 100))


def test_a_full_disk_is_noticed_before_it_is_full(tmp_path: Path) -> None:
    huge = Workload("huge", 10**9, 1000, 1, 1000)
    with scratch.open_scratch(tmp_path) as opened, pytest.raises(BenchError, match="huge needs"):
        built_logs.log_dir_of(opened, huge)


def test_tables_are_appended_and_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_side, "CHUNK", 500)
    folder = Scratch(tmp_path)
    folder.copies.mkdir()
    speeds = tables_side.measure(folder, 1500, 1)
    assert list(speeds) == ["append, none", "read, none", "append, lz4", "read, lz4"]
    assert all(speed > 0 for speed in speeds.values())
    assert list(folder.copies.iterdir()) == []


def engine_bench(batches: dict[str, int]) -> str:
    """What the oracle tells of a megabyte, as far as it is read; so many microseconds each."""
    return "".join(
        json.dumps(
            {"log": log, "what": what, "operations": operations, "cpu_seconds": operations / 1e6}
        )
        + "\n"
        for log, times in batches.items()
        for what, operations in (
            *((what, times) for what in (*IN_ORDER, "read of one batch, random")),
            *((what, 100_000) for what in (engine_side.OFFSET, engine_side.TIMESTAMP)),
        )
    )


IN_ORDER = (engine_side.APPEND, engine_side.READ, engine_side.UNCLEAN, engine_side.CLEAN)


def test_the_engine_does_as_often_what_kafka_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = engine_bench({shape.name: 1 for shape in engine_side.SHAPES})
    batches = {"1 KB batches": 1029, "16 KB batches of 100-byte records": 66}  # as Kafka tells
    monkeypatch.setattr(kafka, "run", lambda *_: told)
    with pytest.raises(BenchError, match=r"1 KB batches.* is nothing that Kafka did as often"):
        engine_side.measure(Scratch(tmp_path), 1, 5, 1)
    monkeypatch.setattr(kafka, "run", lambda *_: engine_bench(batches))
    found = engine_side.measure(Scratch(tmp_path), 1, 5, 1)
    assert len(found) == 14
    for operation in found:
        assert operation.microseconds[KAFKA] == [pytest.approx(1)]
        (ours,) = operation.microseconds["ours"]
        assert operation.ratio(KAFKA, "ours").of_medians == pytest.approx(1 / ours)
    assert list(tmp_path.rglob("*.log")) == []
