"""Some schedules of every pair of operations of a log manager, in two threads and in two processes.
2,000 of them: `make test-engine-pairs`."""

from contextlib import nullcontext
from typing import Any

import pytest

from compactor import LogManager
from storage.log.managed_logs import LogDirectory
from tests.engine.pairs import processes, threads
from tests.engine.pairs.processes import Processes
from tests.engine.pairs.story import OPERATIONS


def test_no_operation_of_a_manager_is_forgotten() -> None:
    there = {name for name in vars(LogManager) if not name.startswith("_")}
    assert {name for _, names in OPERATIONS.values() for name in names} == there


@pytest.mark.parametrize("part", range(4))
def test_two_operations_in_two_threads(part: int) -> None:
    """L-27.4, L-27.5, C-17.5, C-17.6."""
    first = len(threads.PAIRS) * 7
    for seed in range(first + part, first + len(threads.PAIRS), 8):
        played = threads.play(seed)
        assert played.problems == [], f"threads, seed {seed}: {played.pair}"


def test_an_operation_and_a_command_in_two_processes() -> None:
    """L-26.2."""
    with Processes() as both:
        for seed in range(3, len(processes.PAIRS), 16):
            played = both.play(seed)
            assert played.problems == [], f"processes, seed {seed}: {played.pair}"


def test_the_same_seed_is_the_same_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[Any]] = []
    write = LogDirectory.write

    def noted(self: LogDirectory, name: str, entries: Any) -> None:
        seen[-1].append((self.path, name, dict(entries)))
        write(self, name, entries)

    monkeypatch.setattr(LogDirectory, "write", noted)
    for _ in range(2):
        seen.append([])
        threads.play(7 * len(threads.PAIRS) + 130)
    assert seen[0] == seen[1] != []


def is_noticed(*pairs: tuple[str, str]) -> bool:
    """Whether one of some schedules of these pairs goes wrong."""
    firsts = [threads.PAIRS.index(pair) for pair in pairs]
    seeds = (first + turn * len(threads.PAIRS) for turn in range(40) for first in firsts)
    return any(threads.play(seed).problems for seed in seeds)


class _NoLock:
    """Whoever takes it has it."""

    def __get__(self, *_: object) -> Any:
        return nullcontext()

    def __set__(self, *_: object) -> None:
        pass


def test_it_is_noticed_where_checkpoints_have_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogDirectory, "lock", _NoLock(), raising=False)
    assert is_noticed(("truncate itself", "clean"), ("truncate", "recovery points"))


def test_it_is_noticed_where_a_truncation_leaves_the_cleaners_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LogDirectory, "truncating", lambda *_: nullcontext())
    assert is_noticed(("truncate itself", "clean"), ("truncate", "recovery points"))
