"""A share of what `make test-undo` tries; each defect that it was made for, put back, is found."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from compactor.originals import undo_judgement
from compactor.originals.kept_manifest import KeptStep, LogBefore
from compactor.originals.undo_judgement import left_by
from compactor.originals.undo_judgement import steps_done as real_steps_done
from tests.campaign import IN_MEMORY
from tests.histories.mutants import MUTANTS
from tests.undo.campaign import played_in
from tests.undo.steps import Sequence, Step, every, seeded
from tests.undo.world import KINDS

EVERY = 61  # of all of up to three steps
SEEDS = range(30)


class Tally(NamedTuple):
    wrong: list[str]
    counts: Counter[str]


def play(sequences: Iterable[Sequence], stop_at: int = 20) -> Tally:
    """Play all of them, until so many went wrong; in memory where the system has a place for it."""
    tally = Tally([], Counter())
    fast = IN_MEMORY if os.path.isdir(IN_MEMORY) else None
    with TemporaryDirectory(prefix="undo-", dir=fast) as root, played_in(Path(root)) as play_one:
        for sequence in sequences:
            tried = play_one(sequence)
            tally.wrong.extend(tried.problems)
            tally.counts.update(tried.counts)
            if len(tally.wrong) >= stop_at:
                break
    return tally


def test_undo_brings_back_what_was_or_changes_nothing() -> None:
    tally = play([*list(every(tuple(KINDS), 3))[::EVERY], *seeded(tuple(KINDS), SEEDS)])
    assert tally.wrong == []
    assert {*tally.counts} > {f"undoings: {what}" for what in ("undone", "refused", "discarded")}


def test_every_sequence_is_tried() -> None:
    assert len({sequence.steps for sequence in every(("a", "b"), 3)}) == 10 + 100 + 1000
    assert len(list(every(("a", "b"), 3))) == 2 * 1110
    assert {len(sequence.steps) for sequence in seeded(("a",), range(100))} == {4, 5}


def test_a_log_start_that_a_killed_run_had_raised_counts_as_undone() -> None:
    """No segment had gone, so nothing but the entry goes back: it was told as nothing to undo."""
    kill = Step.KILL
    steps = Step.UNDO, Step.APPEND, kill, kill, kill
    tally = play([Sequence("retained by time", steps, 2707)])
    assert tally.wrong == []


@contextmanager
def only_what_the_run_replaced_is_looked_at() -> Iterator[None]:
    """A later cleaning is then told by the checkpoint alone."""

    def steps_done(
        found: Mapping[str, Any], before: LogBefore, steps: tuple[KeptStep, ...], seen: Any
    ) -> int | None:
        replaced = {mark.name for step in steps for mark in (*step.originals, *step.put)}
        left = left_by(before, steps)
        alike = {name: seen(mark) for name, mark in left.items() if name not in replaced}
        alike |= {name: each for name, each in found.items() if name in replaced}
        return real_steps_done(alike, before, steps, seen)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(undo_judgement, "steps_done", steps_done)
        patches.setattr(undo_judgement, "check_appended", lambda *_: None)
        yield


@pytest.mark.parametrize(
    ("defect", "kind"),
    [
        (MUTANTS["undone over later retention"], "retained by size"),
        (MUTANTS["topic id ignored"], "compacted"),
        (only_what_the_run_replaced_is_looked_at, "of an older broker"),
    ],
)
def test_a_defect_that_is_put_back_is_found_in_three_steps(
    defect: Callable[[], AbstractContextManager[None]], kind: str
) -> None:
    after_a_run = [s for s in every((kind,), 3) if s.steps[0] is Step.RUN]
    with defect():
        tally = play(after_a_run, stop_at=1)
    assert len(tally.wrong) == 1, tally


@pytest.mark.parametrize("is_put_back", [False, True])
def test_a_run_that_was_cut_short_anywhere_is_undone(is_put_back: bool) -> None:
    """Also where recovery has left the last sources of a swap beside what took their place."""
    with pytest.MonkeyPatch.context() as patches:
        if is_put_back:  # what a swap has left over is not known
            patches.setattr(undo_judgement, "_left_over", lambda *_: set())
        tally = play(Sequence("compacted", (Step.KILL,), seed) for seed in range(40))
    assert bool(tally.wrong) is is_put_back
