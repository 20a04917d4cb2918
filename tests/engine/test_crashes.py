"""A sample of the crash states of the engine's operations, opened by our engine; all of them, by
Kafka's engine too: `python -m tests.engine.crash`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.files.local import LocalFiles
from tests.crash.matrix import sample
from tests.crash.states import crash_states
from tests.engine.crash.opening import Outcome, opened
from tests.engine.crash.record import recorded
from tests.engine.crash.stories import STORIES, Story

SAMPLE = 8


def outcomes(story: Story, work: Path, count: int) -> Iterator[Outcome]:
    run = recorded(story, work)
    states = list(crash_states(run.record))
    assert len(states) > 40
    return (opened(run, each, work / str(i)) for i, each in enumerate(sample(states, count)))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_was_flushed_is_there_after_a_crash(story: Story, tmp_path: Path) -> None:
    """L-21, L-22, L-23, L-25."""
    found = list(outcomes(story, tmp_path, SAMPLE))
    assert [problem for each in found for problem in each.problems] == []
    assert sum(each.is_refused for each in found) <= 1  # as by Kafka's engine


def test_a_log_without_syncs_of_names_loses_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(_: LocalFiles, path: str) -> None:
        del path

    monkeypatch.setattr(LocalFiles, "sync_directory", forget)
    (story,) = (story for story in STORIES if story.name == "truncated by segments")
    found = outcomes(story, tmp_path, 100)
    assert any("was flushed" in problem for each in found for problem in each.problems)
