"""Logs judged by two processes come out as by one; where they cannot, one does it."""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.errors import ConfigError, RefusedError
from compactor.host import second_process
from compactor.planning import evaluation
from compactor.planning.candidate import RoundClock
from compactor.planning.evaluation import EvaluationRequest, evaluate
from compactor.planning.round_plan import RoundPlan, plan_round
from compactor.reason_codes import ReasonCode
from compactor.settings.config import Config
from compactor.settings.rules import KAFKAS_DEFAULTS
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.files.local import LOCAL, LocalFiles
from storage.formats import checkpoint
from tests.compactor.plan_logs import (
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    open_transaction,
    with_settings,
)

SETTINGS = {"cleanup.policy": "compact,delete", "retention.ms": "998500"}


@pytest.fixture
def by_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a command of its own, where there are many logs."""
    monkeypatch.setattr(second_process, "FEWEST_FOR_TWO", 1)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def asked(*log_dirs: str, config: Config | None = None) -> EvaluationRequest:
    config = config or replace(with_settings(SETTINGS), rules=KAFKAS_DEFAULTS)
    clock = RoundClock.of(config, NOW_MS, None)
    problems = {os.path.join(log_dirs[0], "known-0"): "known to be unfit"}
    return EvaluationRequest(
        log_dirs=log_dirs, config=config, clock=clock, problems=problems, with_files=False
    )


def by_one(wanted: EvaluationRequest, monkeypatch: pytest.MonkeyPatch) -> RoundPlan:
    with monkeypatch.context() as patch:
        patch.setattr(second_process, "FEWEST_FOR_TWO", 2**62)
        return plan_round(wanted)


def written_at_the_clock(*log_dirs: Path) -> None:
    for path in (path for root in log_dirs for path in root.glob(f"*/*{LOG}")):
        os.utime(path, ns=(NOW_MS * 10**6, NOW_MS * 10**6))


def all_kinds(tmp_path: Path) -> tuple[str, str]:
    """Logs of which each is judged in another way, in two log directories."""
    one, two = tmp_path / "one", tmp_path / "two"
    many = [Shape("many", number, number % 5 + 1) for number in range(20)]
    odd = ("known", "damaged", "clean", "open", "stray", "late", "half", "short", "moving")
    build(one, *many, *(Shape(topic, producer_id=7) for topic in odd), Shape("both"))
    build(two, Shape("both"), Shape("other"), Shape("late", 1))
    clean_up_to(one, ("clean", 0, 4), ("other", 0, 2), ("many", 3, 2))
    (one / "damaged-0" / file_name(4, LOG)).write_bytes(b"no batch")
    (one / "damaged-0" / file_name(4, INDEX)).unlink()
    open_transaction(one / "open-0", 9, 2, 4)
    (one / "stray-0" / "no_offset.log").touch()
    (one / "half-0" / file_name(0, LOG + ".cleaned")).touch()
    (one / "short-0" / file_name(0, TIME_INDEX)).write_bytes(bytes(5))
    (two / f"moving-0.{'0' * 32}-future").mkdir()
    written_at_the_clock(one, two)
    for path in (one / "late-0", two / "late-1"):
        time_ms = NOW_MS + 400_000
        os.utime(path / file_name(0, LOG), ns=(time_ms * 10**6, time_ms * 10**6))
    return str(one), str(two)


@pytest.mark.usefixtures("by_two")
def test_two_processes_say_what_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = asked(*all_kinds(tmp_path))
    expected = by_one(wanted, monkeypatch)
    kinds = {report.reason_code for report in expected.not_cleaned}
    assert len(expected.logs) > 10 and len(kinds) > 6 and expected.retention
    assert {ReasonCode.DAMAGED, ReasonCode.IN_TWO_LOG_DIRS, ReasonCode.MOVING} <= kinds
    monkeypatch.setattr(
        evaluation, "_evaluate_own", counted_share := Counted(evaluation._evaluate_own)
    )
    assert plan_round(wanted) == expected
    assert counted_share.calls == 1  # the other half is not this process's


def test_a_plan_of_one_log_says_of_it_what_a_plan_of_all_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the other logs, their names alone are looked at."""
    one, two = all_kinds(tmp_path)
    checkpoint.write(
        os.path.join(one, checkpoint.CLEANER_OFFSET), {("gone", 0): 7, ("clean", 0): 4}
    )
    wanted = asked(one, two)
    whole = by_one(wanted, monkeypatch)
    names = {(log.topic, log.partition) for log in whole.inventory}
    assert len(names) > 30
    for topic, partition in names - {("gone", 0)}:  # that has no directory
        found = plan_round(replace(wanted, only=f"{topic}-{partition}"))
        key = (topic, partition)
        assert of_log(found, key) == of_log(whole, key)
        assert [(each.path, each.partitions) for each in found.log_dirs] == [
            (each.path, each.partitions) for each in whole.log_dirs
        ]
        assert found.absent == whole.absent


def of_log(plan: RoundPlan, key: tuple[str, int]) -> list[object]:
    """Return all that a plan says of one log; its number is that among those taken on."""
    return [
        [replace(log, log_id=0) for log in plan.logs if (log.topic, log.partition) == key],
        *(
            [each for each in of_logs if (each.topic, each.partition) == key]
            for of_logs in (plan.not_cleaned, plan.inventory, plan.retention, plan.stray_entries)
        ),
        [facts for facts in plan.facts if facts.judgement.partition[:2] == key],
    ]


class Counted:
    def __init__(self, call: Callable[..., object]) -> None:
        self._call, self.calls = call, 0

    def __call__(self, *words: object) -> object:
        self.calls += 1
        return self._call(*words)


@pytest.mark.usefixtures("by_two")
def test_where_the_other_process_ends_early_or_cannot_be_had_one_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = asked(*all_kinds(tmp_path))
    expected = by_one(wanted, monkeypatch)
    for written in (b"", b"\x80\x05" * 500):
        monkeypatch.setattr(
            evaluation, "_write_other_half", lambda _, out, written=written: out.write(written)
        )
        assert plan_round(wanted) == expected
    monkeypatch.setattr(evaluation, "run_forked", lambda *_: None)
    assert plan_round(wanted) == expected


@pytest.mark.usefixtures("by_two")
def test_a_log_that_only_one_of_them_has_seen_is_judged_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = all_kinds(tmp_path)
    fork = second_process._fork

    def fork_and_wait() -> int:
        child = fork()
        if child:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            build(Path(one), Shape("came", 0), Shape("came", 1))
            written_at_the_clock(Path(one))
        return child

    monkeypatch.setattr(second_process, "_fork", fork_and_wait)
    wanted = asked(one)
    found = plan_round(wanted)
    assert found == by_one(wanted, monkeypatch)
    assert {"came-0", "came-1"} <= {log.name for log in found.logs}


@pytest.mark.usefixtures("by_two")
def test_errors_are_those_of_one_process(tmp_path: Path) -> None:
    one, _ = all_kinds(tmp_path)
    with pytest.raises(RefusedError, match="No such file"):
        evaluate(asked(one, str(tmp_path / "none")))
    (tmp_path / "file").touch()
    with pytest.raises(RefusedError, match="Not a directory"):
        evaluate(asked(one, str(tmp_path / "file")))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # none is left


@pytest.mark.usefixtures("by_two")
def test_of_settings_that_clash_those_of_the_first_log_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(9)]
    log_dir = build(tmp_path / "d", *map(Shape, names))
    clash = {"min.compaction.lag.ms": 2, "max.compaction.lag.ms": 1}
    for clashing in (names, names[3:], names[5:]):
        config = replace(with_settings({}), topics=dict.fromkeys(clashing, clash))
        wanted = asked(log_dir, config=config)
        with pytest.raises(ConfigError) as expected:
            by_one(wanted, monkeypatch)
        with pytest.raises(ConfigError) as found:
            evaluate(wanted)
        assert str(found.value) == str(expected.value)
        assert clashing[0] in str(expected.value)
    assert len({evaluation._is_first(f"{clashing}-0") for clashing in names}) == 2


@pytest.mark.usefixtures("by_two")
def test_there_are_two_only_where_it_pays_and_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = asked(build(tmp_path / "d", Shape("a"), Shape("b")))
    assert evaluation._is_for_two(wanted)
    assert not evaluation._is_for_two(replace(wanted, with_files=True))
    assert not evaluation._is_for_two(replace(wanted, files=LocalFiles()))
    for module, name, value in (
        (second_process, "FEWEST_FOR_TWO", 3),
        (os, "sched_getaffinity", lambda _: {0}),
        (threading, "active_count", lambda: 2),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            assert not evaluation._is_for_two(wanted)
    assert wanted.files is LOCAL
