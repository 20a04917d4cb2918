"""What the sides answer is read and held against each other; nobody cleans a log."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage.codecs.compression import Codec
from tests.bench import cleanings, engine, fleets, scratch, swap, tables
from tests.bench.cleanings import Turn, measure
from tests.bench.results import JVM, BenchError, Outcome, Peak, Sample
from tests.bench.scratch import Scratch, Setup
from tests.bench.session import Request
from tests.bench.timing import Answers, Measured
from tests.bench.workloads import (
    CONFIGS,
    EXPLAIN,
    KAFKA,
    OPEN,
    PLAN,
    RECOVER,
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
WORDS = ("--master", "local[2]", "--engine", "local")
ONE = Workload("x", 1, 1, 1, 100)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    folder = Scratch(tmp_path / "scratch")
    folder.copies.mkdir(parents=True)
    folder.logs.mkdir()
    return Setup(folder, "local[2]", 2, lambda _: None, is_quick=True)


def test_both_sides_report_the_same_cleaning_alike() -> None:
    assert cleanings.kafkas_outcome(KAFKAS) == cleanings.our_outcome([OURS]) == OUTCOME
    for changed in ({"cleaned": False}, {"end_offset": 49}):
        with pytest.raises(BenchError, match="did not clean the whole log"):
            cleanings.kafkas_outcome(KAFKAS | changed)
    for status in ("would-clean", "passed-over", "set-aside", "failed"):
        with pytest.raises(BenchError, match=f"{status}, why"):
            cleanings.our_outcome([OURS | {"status": status, "reason": "why"}])


class Sides:
    """Takes the place of all sides and notes their turns; each turn is a second longer."""

    def __init__(self, patch: pytest.MonkeyPatch, **outcomes: Outcome) -> None:
        self.turns: list[str] = []
        self._outcomes = outcomes
        patch.setattr(cleanings, "copied", lambda *_: self._turn("cp"))
        patch.setattr(cleanings, "kafkas", lambda *_: self._turn("kafka"))
        patch.setattr(cleanings, "cold", lambda _, side, *__, **named: self._turn(side, **named))
        patch.setattr(cleanings, "warm", lambda _, side, *last: self._turn(side, bool(last[-1])))
        patch.setattr(scratch, "settle", lambda: None)
        patch.setattr(scratch, "built", lambda *_: Path("log"))
        patch.setattr(scratch, "log_bytes", lambda _: 5070)

    def _turn(self, side: str, watch_memory: bool = False) -> Turn:
        self.turns.append(f"{side}, memory" if watch_memory else side)
        sample = Sample(len(self.turns), 1.0)
        if side == "cp":
            return Turn(sample)
        memory = {JVM: Peak(len(self.turns))} if watch_memory or side == "kafka" else {}
        outcome = self._outcomes.get(side, OUTCOME)
        number = len(self.turns)
        return Turn(sample, outcome, memory, 100 + number, {JVM: number}, {"scan": 200 + number})


def test_sides_take_turns(monkeypatch: pytest.MonkeyPatch, setup: Setup) -> None:
    sides = Sides(monkeypatch)
    log = measure(setup, ONE)
    assert sides.turns == [
        *("cp", "kafka", "cp", "cold", "warm", "local-cold", "local"),
        *("kafka", "cp", "cold", "warm, memory", "local-cold", "local, memory"),
        *("cold, memory", "local-cold, memory"),
    ]
    assert {side: [s.seconds for s in samples] for side, samples in log.samples.items()} == {
        "kafka": [2, 8], "cp": [3, 9], "cold": [4, 10], "warm": [5, 11],
        "local-cold": [6, 12], "local": [7, 13],
    }  # fmt: skip
    assert (log.outcome, log.log_bytes) == (OUTCOME, 5070)
    assert (log.first_rounds, log.local_first_rounds) == ([105, 111], [107, 113])
    assert (log.warm_cpu_seconds, log.local_cpu_seconds) == (
        [{JVM: 5}, {JVM: 11}],
        [{JVM: 7}, {JVM: 13}],
    )
    assert (log.warm_phases, log.local_phases) == (
        [{"scan": 205}, {"scan": 211}],
        [{"scan": 207}, {"scan": 213}],
    )
    assert log.memory == {
        "kafka": {JVM: Peak(8)}, "warm": {JVM: Peak(11)}, "local": {JVM: Peak(13)},
        "cold": {JVM: Peak(14)}, "local-cold": {JVM: Peak(15)},
    }  # fmt: skip


@pytest.mark.parametrize("side", ["cold", "warm", "local-cold", "local"])
def test_a_side_that_leaves_something_else_stops_it(
    side: str, monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    Sides(monkeypatch, **{side: OUTCOME._replace(records_kept=21)})
    with pytest.raises(BenchError, match=f"x: {side} left .*records_kept=21.*not .*kept=20"):
        measure(setup, ONE)


def test_only_many_rounds_of_kafka_may_leave_other_bytes(
    monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    many = Workload("x", 1, 1, 1, 100, many_rounds=True)
    Sides(monkeypatch, kafka=OUTCOME._replace(bytes_after=2001))
    assert measure(setup, many).outcome.bytes_after == 2000, "ours"
    with pytest.raises(BenchError, match=r"x: cold left .*bytes_after=2000.*not .*after=2001"):
        measure(setup, ONE)


def test_bytes_of_a_codec_of_another_build_are_held_among_ours_alone(
    monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    zstd = Workload("x", 1, 1, 1, 100, "zstd")
    monkeypatch.setattr(cleanings, "differing_builds", lambda *_: {Codec.ZSTD: "another"})
    Sides(monkeypatch, kafka=OUTCOME._replace(bytes_after=2001))
    assert measure(setup, zstd).outcome.bytes_after == 2001, "Kafka's"
    with pytest.raises(BenchError, match=r"x: cold left .*bytes_after=2000.*not .*after=2001"):
        measure(setup, replace(zstd, codec="lz4"))
    Sides(monkeypatch, local=OUTCOME._replace(bytes_after=2002))
    with pytest.raises(BenchError, match=r"x: local left .*bytes_after=2002.*not .*after=2000"):
        measure(setup, zstd)
    Sides(monkeypatch, kafka=OUTCOME._replace(records_kept=21))
    with pytest.raises(BenchError, match=r"x: cold left .*records_kept=20.*not .*kept=21"):
        measure(setup, zstd)


@pytest.mark.parametrize(("side", "master"), [("warm", "local[2]"), ("local", None)])
def test_a_warm_side_is_asked_for_its_engine(
    side: str, master: str | None, monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    asked: list[Request] = []

    def answer(request: Request, watched_after: int) -> Answers:
        asked.append(request)
        stages = {"inspect: inspect": 1, "inspect: merge": 2, "run: scan": 3, "run: resolve": 4}
        one = {"seconds": 2, "cpu_seconds": {"all": 3, "driver": 1}, "phases": {}, "logs": [OURS]}
        return Answers([one | stages] * request.turns, 0, {JVM: Peak(watched_after)})

    monkeypatch.setattr(Request, "run", answer)
    monkeypatch.setattr(scratch, "built", lambda *_: Path("log"))
    turn = cleanings.warm(setup, side, Path("log"), watch_memory=False)
    assert (turn.sample, turn.cpu_seconds, turn.memory) == (Sample(2, 3), {"driver": 1}, {})
    found = cleanings.inspections(setup, side)
    assert (found.log, found.cpu_seconds["run: scan"]) == ("100b-4gb", [3, 3])
    assert [(request.what, request.master, request.turns) for request in asked] == [
        ("clean", master, 2),
        ("inspect", master, 4),  # one loads, two count, one is watched
    ]


def test_the_same_work_is_done_by_so_many_executors_in_turn(
    monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    masters: list[str | None] = []

    def answer(request: Request, **_: int) -> Answers:
        masters.append(request.master)
        kept = 20 if len(masters) < 12 else 21
        log = OURS | {"records": {"read": 50, "kept": kept}}
        counted = {"seconds": len(masters), "cpu_seconds": {"all": 30}, "logs": [log]}
        return Answers([{}, counted], 0, {})

    monkeypatch.setattr(Request, "run", answer)
    monkeypatch.setattr(scratch, "built", lambda *_: Path("log"))
    monkeypatch.setattr(scratch, "settle", lambda: None)
    found = cleanings.by_executors(setup)
    clusters = [f"local-cluster[{count},1,1024]" for count in (1, 2, 4)]
    assert masters == [*clusters, None] * 2
    assert found["4"] == [Sample(3, 30), Sample(7, 30)]
    assert found["local"] == [Sample(4, 30), Sample(8, 30)]
    with pytest.raises(BenchError, match=r"100b-4gb: local left .*kept=21.*not .*kept=20"):
        cleanings.by_executors(setup)


def test_a_cold_side_names_its_engine(setup: Setup) -> None:
    engines = [
        [word for word in cleanings.run_command(setup, Path("log"), side=side) if word in WORDS]
        for side in ("cold", "local-cold")
    ]
    assert engines == [["--master", "local[2]"], ["--engine", "local"]]


def test_many_logs_are_cleaned_by_all_in_turn(
    monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    log_dir = setup.scratch.logs / "log"
    (log_dir / "t-0").mkdir(parents=True)
    turns: list[str] = []

    def done(name: str) -> Measured:
        turns.append(name)
        return Measured(Sample(len(turns), 1), 0, "", "", 10 * len(turns), {})

    monkeypatch.setattr(scratch, "built", lambda *_: log_dir)
    monkeypatch.setattr(scratch, "settle", lambda: None)
    monkeypatch.setattr(fleets, "kept", lambda *_: log_dir)
    monkeypatch.setattr(fleets, "_by_kafka", lambda *_: done("kafka"))
    monkeypatch.setattr(
        fleets, "_by_us", lambda *words, side="cold": done(" ".join([*words[2:], side]))
    )
    found = fleets.measure_many_logs(setup)
    one_turn = ["kafka", "would-clean --dry-run cold", "cleaned cold", "cleaned local-cold"]
    assert turns == one_turn * 2
    assert {side: [s.seconds for s in many.samples] for side, many in found.items()} == {
        "kafka": [1, 5], "dry run": [2, 6], "run": [3, 7], "local-cold": [4, 8],
    }  # fmt: skip
    assert (found["run"].partitions, found["run"].peak_rss_bytes) == (10, 70)


@pytest.mark.parametrize("name", [PLAN, CONFIGS, EXPLAIN, RECOVER, OPEN])
def test_whole_commands_take_every_log(
    name: str, monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    monkeypatch.setattr(Fleet, "quick", lambda _: Fleet(3, 4, 2))
    result = fleets.measure(setup, name)
    assert (result.partitions, result.segments, len(result.samples)) == (3, 12, 2)
    assert all(sample.seconds > 0 for sample in result.samples)
    missed = fleets.COMMANDS[name]._replace(prepare=lambda _: 4)
    monkeypatch.setitem(fleets.COMMANDS, name, missed)
    with pytest.raises(BenchError, match="not all of 4"):
        fleets.measure(setup, name)


@pytest.mark.parametrize(("segments_a_group", "groups"), [(1, 7), (3, 3)])
def test_a_swap_is_of_all_groups(
    tmp_path: Path, setup: Setup, segments_a_group: int, groups: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shape = SwapShape(7, segments_a_group)
    plan, finished = swap.write(tmp_path / "log", shape)
    assert len(finished) == len(plan.groups) == groups
    monkeypatch.setattr(swap, "swap_shapes", lambda _: [shape])
    (result,) = swap.measure(setup)
    assert (result.segments, len(result.samples)) == (7, 2)
    assert not list(setup.scratch.root.rglob("*.log"))


def test_tables_are_appended_and_read_whole(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CHUNK", 500)
    monkeypatch.setattr(tables, "QUICK_RECORDS", 1500)
    speeds = tables.measure(setup)
    assert list(speeds) == ["append, none", "read, none", "append, lz4", "read, lz4"]
    assert all(speed > 0 for speed in speeds.values())
    assert list(setup.scratch.copies.iterdir()) == []


def engine_bench(batches: dict[str, int]) -> str:
    """Return what the oracle writes of a megabyte, as far as it is read; a microsecond each."""
    lines: list[dict[str, Any]] = []
    for log, count in batches.items():
        in_order = (engine.APPEND, engine.READ, engine.UNCLEAN, engine.CLEAN, "another, random")
        operations = dict.fromkeys(in_order, count)
        operations |= dict.fromkeys((engine.OFFSET, engine.TIMESTAMP), 100_000)
        lines += [
            {"log": log, "what": what, "operations": n, "cpu_seconds": n / 1e6}
            for what, n in operations.items()
        ]
    return "\n".join(map(json.dumps, lines))


def test_the_engine_does_as_often_what_kafka_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = engine_bench({shape.name: 1 for shape in engine.SHAPES})
    monkeypatch.setattr(kafka, "run", lambda *_: once)
    with pytest.raises(BenchError, match=r"1 KB batches.* is nothing that Kafka did as often"):
        engine.compared(tmp_path, 1, 5, 1)
    as_often = engine_bench({"1 KB batches": 1029, "16 KB batches of 100-byte records": 66})
    monkeypatch.setattr(kafka, "run", lambda *_: as_often)
    found = engine.compared(tmp_path, 1, 5, 1)
    assert len(found) == 14
    for operation in found:
        assert operation.microseconds[KAFKA] == [pytest.approx(1)]
        (ours,) = operation.microseconds["ours"]
        assert operation.ratio(KAFKA, "ours").of_medians == pytest.approx(1 / ours)
    assert list(tmp_path.rglob("*.log")) == []
