"""A sample of the crash states of moves between log directories, started by our log manager; all of
them, by Kafka's too: `python -m tests.engine.crash`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.matrix import sample
from tests.crash.operations import Sync, Write
from tests.crash.states import CrashState, crash_states
from tests.engine.crash.memory_record import is_directory, tree
from tests.engine.crash.moves import LOOK, MOVES, SOURCE, TARGET, Moved, by_command, tried

SAMPLE = 12


def is_in_both(state: CrashState) -> bool:
    files = tree(state.files)
    return all(Path(log_dir) / "t-0" in files for log_dir in (SOURCE, TARGET))


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)
def test_the_records_are_there_after_a_crash(move: Callable[[], Moved], tmp_path: Path) -> None:
    """L-28.8."""
    moved = move()
    states = list(crash_states(moved.record))
    assert len(states) > 300
    found = list(tried(moved, sample(states, SAMPLE), tmp_path))
    assert [problem for _, _, problems in found for problem in problems] == []


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)
def test_a_log_in_both_directories_ends_the_start(
    move: Callable[[], Moved], tmp_path: Path
) -> None:
    """L-26.4, L-28.8: between two renames, as in Kafka."""
    moved = move()
    both = [state for state in crash_states(moved.record) if is_in_both(state)]
    assert both
    for _, told, problems in tried(moved, both, tmp_path):
        assert told[-len(LOOK)]["error"] == "IllegalStateException"
        assert problems == []


def test_a_move_without_syncs_loses_records(tmp_path: Path) -> None:
    moved = by_command()
    done = moved.record.operations
    directories = {o.file for o in done if isinstance(o, Write) and is_directory(o.content)}
    done[:] = [o for o in done if not isinstance(o, Sync) or o.file in directories]
    states = sample(list(crash_states(moved.record)), 40)
    assert any(problems for _, _, problems in tried(moved, states, tmp_path))
