"""Groups are swapped in while others are rewritten: in order, one by one, none after a failure."""

import errno
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xxhash

from cleaner_jobs.messages import LogPlan, Part, Rewritten
from compactor.cleaning import swapper
from compactor.cleaning.log_report import SWAP_BROKE_OFF_NOTE
from compactor.cleaning.stage_values import FinishedGroup
from compactor.cleaning.swapper import GroupSwapper, Swapped
from compactor.finalizer import StagedGroup, swap_group
from compactor.outcome.round_report import LogStatus
from storage.files.files import Files
from storage.files.local import LOCAL
from tests.compactor.small_rounds import logs_in, two_logs
from tests.support.files.watched import Operation, WatchedDisk
from tests.support.local_round import LocalRound, NoProgress
from tests.support.made_log import batches_of, files_of, log_of, plan_of, round_of
from tests.support.made_values import rewritten

THREE = [[0], [4], [8]]


@pytest.fixture
def swapped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Base offsets of the groups that would have been swapped in, in their order."""
    bases: list[int] = []

    def note(_: object, group: StagedGroup, *__: object) -> None:
        bases.append(group.sources[0].base_offset)

    monkeypatch.setattr(swapper, "swap_group", note)
    return bases


def plan_in(root: Path) -> LogPlan:
    return plan_of(logs_in(root), THREE, 12)


def finished(number: int, root: Path) -> FinishedGroup:
    parts: Sequence[Part] = ()
    empty = root / "empty"
    empty.touch()
    checksum = xxhash.xxh3_64_intdigest(b"")
    piece = rewritten(group=number, log_file=str(empty), log_bytes=0, log_checksum=checksum)
    return FinishedGroup(number, parts, [piece])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_groups_go_in_in_ascending_order_however_they_are_finished(
    tmp_path: Path, swapped: list[int], order: Sequence[int]
) -> None:
    """C-6.5: a tombstone must not go before the records that it hides."""
    plan = plan_in(tmp_path)
    with GroupSwapper("run", NoProgress()) as groups:
        for number in order:
            groups.give(plan, finished(number, tmp_path))
        found = groups.finish()
    assert swapped == [0, 4, 8]
    assert found == {0: Swapped(groups=3)}


def filled(number: int, root: Path, data: bytes = b"batch", log_bytes: int = 5) -> FinishedGroup:
    """A group of which something is left."""
    path = root / f"staged-{number}"
    path.write_bytes(data)
    checksum = xxhash.xxh3_64_intdigest(data)
    piece = rewritten(group=number, log_file=str(path), log_bytes=log_bytes, log_checksum=checksum)
    return FinishedGroup(number, (), [piece])


def swapped_behind_the_first(
    root: Path, monkeypatch: pytest.MonkeyPatch, *others: FinishedGroup
) -> tuple[list[list[int]], Swapped]:
    """The sources of each swap, where all others are finished while the first one goes in."""
    all_wait, swaps = threading.Event(), list[list[int]]()

    def note(_: object, group: StagedGroup, *__: object) -> None:
        assert all_wait.wait(60)
        swaps.append([source.base_offset for source in group.sources])
        assert len(group.destinations) == len(group.sources)

    monkeypatch.setattr(swapper, "swap_group", note)
    plan = plan_in(root)
    with GroupSwapper("run", NoProgress()) as groups:
        groups.give(plan, filled(0, root))
        while groups._queues[plan.log_id].finished:
            time.sleep(0.001)
        for group in others:
            groups.give(plan, group)
        all_wait.set()
        return swaps, groups.finish()[plan.log_id]


def test_groups_that_wait_side_by_side_go_in_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = filled(1, tmp_path), filled(2, tmp_path)
    swaps, found = swapped_behind_the_first(tmp_path, monkeypatch, *both)
    assert (swaps, found) == ([[0], [4, 8]], Swapped(groups=3))


@pytest.mark.parametrize("first_is_empty", [True, False])
def test_one_that_becomes_empty_goes_in_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_is_empty: bool
) -> None:
    """C-15.9: recovery has no range for it."""
    two = [filled(1, tmp_path), finished(2, tmp_path)]
    if first_is_empty:
        two = [finished(1, tmp_path), filled(2, tmp_path)]
    swaps, found = swapped_behind_the_first(tmp_path, monkeypatch, *two)
    assert (swaps, found) == ([[0], [4], [8]], Swapped(groups=3))


def test_so_does_one_that_is_left_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would lie between its neighbours, where recovery deletes what is no .swap (C-15.6)."""
    log_bytes = log_of(logs_in(tmp_path / "same"), 4).stat().st_size
    stays = FinishedGroup(1, (), [rewritten(group=1, left_in_place=True, log_bytes=log_bytes)])
    swaps, found = swapped_behind_the_first(tmp_path, monkeypatch, stays, filled(2, tmp_path))
    assert (swaps, found) == ([[0], [8]], Swapped(groups=3))


def test_so_many_at_once_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swapper, "GROUPS_AT_ONCE", 1)
    both = filled(1, tmp_path), filled(2, tmp_path)
    swaps, found = swapped_behind_the_first(tmp_path, monkeypatch, *both)
    assert (swaps, found) == ([[0], [4], [8]], Swapped(groups=3))


def test_those_before_a_group_that_is_wrong_go_in_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = filled(1, tmp_path), filled(2, tmp_path, b"batc")
    swaps, found = swapped_behind_the_first(tmp_path, monkeypatch, *both)
    assert (swaps, found.groups) == ([[0], [4]], 2)
    assert found.problem is not None and "4 bytes are there, 5 were" in found.problem.problem


@pytest.mark.parametrize(("suffix", "half_done"), [(".log", True), (".cleaned", False)])
def test_a_swap_that_breaks_off_is_reported(
    local: LocalRound, tmp_path: Path, suffix: str, half_done: bool
) -> None:
    """C-15.6: from step 2 on the new log counts; before that all is taken back."""
    *_, plan = two_logs(tmp_path)

    def fail(operation: Operation) -> None:
        target = operation.paths[-1]
        in_first = target.startswith(plan.logs[0].path) and target.endswith(suffix)
        if operation.name in ("rename", "remove") and in_first:
            raise OSError(errno.EIO, os.strerror(errno.EIO), *operation.paths)

    local.disk = WatchedDisk(LOCAL, fail)
    failed, other = local.run(plan).logs
    assert (failed.status, other.status) == (LogStatus.FAILED, LogStatus.CLEANED)
    assert [note for note in failed.notes if "broke off" in note] == (
        [SWAP_BROKE_OFF_NOTE] if half_done else []
    )
    assert any(name.endswith(".swap") for name in os.listdir(plan.logs[0].path)) is half_done


def test_what_stands_behind_a_group_that_is_missing_stays_out(
    tmp_path: Path, swapped: list[int]
) -> None:
    plan = plan_in(tmp_path)
    with GroupSwapper("run", NoProgress()) as groups:
        groups.give(plan, finished(2, tmp_path))
        groups.give(plan, finished(0, tmp_path))
        found = groups.finish()
    assert swapped == [0]
    assert found == {0: Swapped(groups=1)}


def test_no_group_of_a_log_begins_once_it_is_stopped(tmp_path: Path, swapped: list[int]) -> None:
    plan = plan_in(tmp_path)
    with GroupSwapper("run", NoProgress()) as groups:
        groups.give(plan, finished(1, tmp_path))
        groups.stop(plan.log_id)
        groups.give(plan, finished(0, tmp_path))
        assert groups.finish() == {0: Swapped()}
    assert swapped == []


def test_no_group_follows_one_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def fail(_: object, group: StagedGroup, *__: object) -> None:
        tried.append(group.sources[0].base_offset)
        raise OSError(5, "Input/output error", group.path)

    monkeypatch.setattr(swapper, "swap_group", fail)
    plan = plan_in(tmp_path)
    with GroupSwapper("run", NoProgress()) as groups:
        for number in range(3):
            groups.give(plan, finished(number, tmp_path))
        problem = groups.finish()[0].problem
    assert tried == [0]
    assert problem is not None and "Input/output error" in problem.problem


def test_an_interrupt_lets_the_group_end_that_is_begun_and_begins_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    ended: list[int] = []

    def slow(_: object, group: StagedGroup, *__: object) -> None:
        begun.set()
        assert go_on.wait(60)
        ended.append(group.sources[0].base_offset)

    monkeypatch.setattr(swapper, "swap_group", slow)
    plan = plan_in(tmp_path)
    groups = GroupSwapper("run", NoProgress())
    stop = groups._stop.set  # the first thing that leaving does

    def stopped() -> None:
        stop()
        go_on.set()

    monkeypatch.setattr(groups._stop, "set", stopped)
    with pytest.raises(KeyboardInterrupt), groups:
        for number in range(3):
            groups.give(plan, finished(number, tmp_path))
        assert begun.wait(60)
        raise KeyboardInterrupt
    assert (ended, groups._queues[0].swapped.groups) == ([0], 1)


def test_a_log_in_use_stays_as_it_is_though_only_its_last_group_has_changed(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = logs_in(tmp_path)
    plan = round_of(plan_of(partition, [[0, 4], [8]], 12))

    def touch(*arguments: Any) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(swapper, "swap_group", touch)
    before = files_of(partition)

    def change(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
        os.utime(log_of(partition, 8), ns=(5, 5))
        return rows

    local.after["rewrite"] = change
    (log,) = local.run(plan).logs
    assert log.status is LogStatus.FAILED and str(log_of(partition, 8)) in (log.reason or "")
    assert files_of(partition) == before and log.notes == ()


def test_groups_that_were_in_before_a_problem_are_counted(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-6.5: they stay, since each is proven by itself, and the checkpoint is not moved."""
    good, bad, plan = two_logs(tmp_path)

    def swap(files: Files, group: StagedGroup, remove: Any, names: Any = None) -> None:
        if group.path == str(bad) and group.sources[0].base_offset == 8:
            raise OSError(5, "Input/output error", group.path)
        swap_group(files, group, remove, names)

    monkeypatch.setattr(swapper, "swap_group", swap)
    monkeypatch.setattr(swapper, "GROUPS_AT_ONCE", 1)
    report = local.run(plan)
    assert [log.status for log in report.logs] == [LogStatus.CLEANED, LogStatus.FAILED]
    assert report.logs[1].notes == (
        "1 segment group swapped in by then; the checkpoint was not moved",
    )
    assert batches_of(bad, 0) == batches_of(good, 0)
    assert len(batches_of(bad, 8)) == 1


class _Weary(NoProgress):
    """Has heard enough when so many groups are in."""

    def __init__(self, groups: int) -> None:
        self._groups = groups

    def swapped(self, groups: int) -> None:
        if groups == self._groups:
            raise OSError("nobody listens")  # an error that a log may have, too


@pytest.mark.parametrize("count", [1, 2])
def test_what_progress_raises_ends_the_swaps_and_is_no_logs_fault(
    tmp_path: Path, swapped: list[int], count: int
) -> None:
    plan = plan_in(tmp_path)
    with (
        pytest.raises(OSError, match="nobody listens"),
        GroupSwapper("run", _Weary(count)) as groups,
    ):
        for number in range(3):
            groups.give(plan, finished(number, tmp_path))
        groups.finish()
    assert swapped == [0, 4, 8][:count]
    assert groups._queues[plan.log_id].swapped == Swapped(count)


def test_whoever_gives_the_next_group_gets_the_error(tmp_path: Path, swapped: list[int]) -> None:
    plan, other = plan_in(tmp_path / "a"), replace(plan_in(tmp_path / "b"), log_id=1)
    with GroupSwapper("run", _Weary(1)) as groups:
        groups.give(plan, finished(0, tmp_path))
        groups._working[0].exception()  # it is over
        with pytest.raises(OSError, match="nobody listens"):
            groups.give(other, finished(0, tmp_path))
    assert swapped == [0]


def joined_early(plan: LogPlan) -> list[str]:
    return [name for name in os.listdir(plan.path) if name.endswith("-joined")]


def piece_of(number: int, root: Path) -> Rewritten:
    """The first piece of a group of which others are missing."""
    return filled(number, root).rewritten[0]._replace(facts_file="later")


def test_nothing_is_joined_of_a_log_that_is_stopped(tmp_path: Path, swapped: list[int]) -> None:
    """What is there makes room at once."""
    plan = plan_in(tmp_path)
    with GroupSwapper("run", NoProgress()) as groups:
        groups.give_piece(plan, piece_of(1, tmp_path))
        groups._working[-1].result()
        assert joined_early(plan) == [f"{4:020}.log.compactor-run-joined"]
        groups.stop(plan.log_id)
        groups._working[-1].result()
        assert joined_early(plan) == [] and not groups._joins
        groups.give_piece(plan, piece_of(1, tmp_path))
        groups.give_piece(plan, piece_of(2, tmp_path))
        groups.finish()
        assert joined_early(plan) == [] and not groups._joins
    assert swapped == []


def test_nor_of_one_that_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, group: StagedGroup, *__: object) -> None:
        raise OSError(5, "Input/output error", group.path)

    monkeypatch.setattr(swapper, "swap_group", fail)
    plan, other = plan_in(tmp_path / "a"), replace(plan_in(tmp_path / "b"), log_id=1)
    with GroupSwapper("run", NoProgress()) as groups:
        for each in (plan, other):
            groups.give_piece(each, piece_of(2, tmp_path))
            groups._working[-1].result()
        groups.give(plan, finished(0, tmp_path))
        groups._working[-1].result()
        assert joined_early(plan) == [] and list(groups._joins) == [(1, 2)]
        groups.give_piece(plan, piece_of(1, tmp_path))
        groups.finish()
        assert joined_early(plan) == [] and len(joined_early(other)) == 1
