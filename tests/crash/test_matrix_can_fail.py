"""A sync left out, or two renames the other way round: the crash matrix tells of it.

The change is made to the operations that a run was recorded with, as if the code had done them so,
and once to the code itself. What is tried are the states that only the changed run can leave, up to
a few syncs on.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from storage.files.local import LocalFiles
from tests.crash.matrix import Matrix, Recorded, recorded
from tests.crash.operations import Operation, Rename, SyncDirectory, Unlink
from tests.crash.states import CrashState, crash_states
from tests.crash.stories import FARTHER, STORIES
from tests.crash.test_swap_crashes import SLOW_LOADER

pytestmark = pytest.mark.crash

AT_ONCE = 25
WINDOW = 3  # syncs
ZERO, THREE, SEVEN, TEN, FAR_BASE = (f"{base:020}" for base in (0, 3, 7, 10, FARTHER))
TWENTY_SEVEN = f"{27:020}"

# the story, and the operation behind which the sync is left out
SYNCS = (
    ("joined", f"rename orders-0/{ZERO}.log.compactor"),  # step 1
    ("joined", f"rename orders-0/{ZERO}.txnindex.cleaned"),  # step 2
    ("joined", f"unlink orders-0/{TEN}.timeindex"),  # step 3
    ("joined", f"unlink orders-0/{TWENTY_SEVEN}.log"),  # step 3, behind the range
    ("joined", f"rename orders-0/{ZERO}.log.swap"),  # step 4
    ("split", f"rename split-0/{THREE}.timeindex.cleaned"),  # step 2, before the lowest
    ("split", f"unlink split-0/{ZERO}.log.swap"),  # step 4, of what stands in
    ("split", f"rename split-0/{FAR_BASE}.log.swap"),  # step 4, of the highest
    ("retained", "rename log-start-offset-checkpoint.tmp"),
    ("retained", f"rename retained-0/{THREE}.log to"),
)
# the story, and two operations that change places
ORDERS = (
    # a source goes before its successor is complete
    ("joined", f"rename orders-0/{ZERO}.log.cleaned", f"unlink orders-0/{SEVEN}.log"),
    # an index gets its name before its log
    ("joined", f"rename orders-0/{ZERO}.log.swap", f"rename orders-0/{ZERO}.index.swap"),
    # the lowest destination of a split is complete before the highest
    ("split", f"rename split-0/{ZERO}.timeindex.cleaned", f"rename split-0/{FAR_BASE}.log.cleaned"),
    # a group counts as cleaned before it is swapped in
    ("joined", f"rename orders-0/{ZERO}.log.cleaned", "rename cleaner-offset-checkpoint.tmp"),
    # the segments go before the log start is raised
    ("retained", f"rename retained-0/{ZERO}.log to", "rename log-start-offset-checkpoint.tmp"),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    root = tmp_path_factory.mktemp("recorded")
    return {
        story.name: recorded(story, root / story.name)
        for story in STORIES
        if story.name in {"joined", "split", "retained"}
    }


@pytest.mark.parametrize(("story", "behind"), SYNCS, ids=[f"{s}: {b}" for s, b in SYNCS])
def test_a_sync_that_is_left_out_loses_something(
    runs: dict[str, Recorded], tmp_path: Path, story: str, behind: str
) -> None:
    run = runs[story]
    at = _sync_behind(run, _find(run, behind))
    operations = [*run.record.operations[:at], *run.record.operations[at + 1 :]]
    assert _loses(run, operations, at, tmp_path)


@pytest.mark.parametrize(("story", "one", "other"), ORDERS, ids=[f"{s}: {a}" for s, a, _ in ORDERS])
def test_operations_the_other_way_round_lose_something(
    runs: dict[str, Recorded], tmp_path: Path, story: str, one: str, other: str
) -> None:
    run = runs[story]
    first, second = sorted((_find(run, one), _find(run, other)))
    operations = run.record.operations.copy()
    operations[first], operations[second] = operations[second], operations[first]
    assert _loses(run, operations, first, tmp_path)


def test_a_swap_without_its_syncs_loses_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the code: of a step that was not synced the file system may do the next one first."""

    def forget(_: LocalFiles, path: str) -> None:
        del path

    monkeypatch.setattr(LocalFiles, "sync_directory", forget)
    (story,) = (story for story in STORIES if story.name == "split")
    run = recorded(story, tmp_path)
    matrix = Matrix(run, tmp_path, next_rounds=False)
    for states in _batched(crash_states(run.record)):
        matrix.try_states(states, SLOW_LOADER)
        if matrix.result.lost:
            return
    pytest.fail("nothing was lost")


def _batched(states: Iterable[CrashState]) -> Iterator[list[CrashState]]:
    rest = iter(states)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch


def _find(run: Recorded, beginning: str) -> int:
    found = [i for i, step in enumerate(run.record.operations) if str(step).startswith(beginning)]
    assert found, beginning
    return found[0]


def _sync_behind(run: Recorded, at: int) -> int:
    """That of a swap's step; meanwhile a thread may stage what becomes of another group."""
    step = run.record.operations[at + 1 :]
    length = next(i for i, done in enumerate(step) if isinstance(done, SyncDirectory))
    assert not any(isinstance(done, (Rename, Unlink)) for done in step[:length])
    return at + 1 + length


def _loses(run: Recorded, operations: Sequence[Operation], at: int, work: Path) -> bool:
    changed = replace(run.record, operations=list(operations))
    of_the_run = {state.identity for state in crash_states(run.record)}
    end = _end_of_window(operations, at)
    matrix = Matrix(run._replace(record=changed), work, next_rounds=False)
    new = (
        state
        for state in crash_states(changed)
        if at <= state.operations <= end and state.identity not in of_the_run
    )
    for states in _batched(new):
        matrix.try_states(states, SLOW_LOADER)
        if matrix.result.lost:
            return True
    return False


def _end_of_window(operations: Sequence[Operation], at: int) -> int:
    """Some syncs from here on, of whatever directory."""
    syncs = [i for i in range(at, len(operations)) if isinstance(operations[i], SyncDirectory)]
    return syncs[WINDOW] if len(syncs) > WINDOW else len(operations)
