"""Takes a log through a sequence of steps, and holds it against the model after each undoing.

At the end every run that was kept is undone once more, the latest first.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compactor.originals.undo import UndoReport, UndoStatus
from tests.campaign import Tried
from tests.support.local_round import LocalRound, open_local_round
from tests.undo.model import KeptRun, Model, Must, filled
from tests.undo.steps import Sequence, Step
from tests.undo.world import KINDS, World


class WrongError(Exception):
    """An undoing did what it must not do, or did not do what it must."""


class Play:
    """One sequence."""

    def __init__(self, sequence: Sequence, root: Path, local: LocalRound) -> None:
        self._rng = random.Random(str(sequence))
        self._world = World(root, KINDS[sequence.kind], local, self._rng)
        self._model = Model(self._world.logs(), KINDS[sequence.kind].has_id)
        self._dirs: list[Path] = []  # of kept runs
        self.undoings: Counter[str] = Counter()

    def take(self, step: Step) -> None:
        world, model = self._world, self._model
        match step:
            case Step.RUN | Step.KILL:
                self._run(is_killed=step is Step.KILL)
            case Step.LATER:
                world.run(is_late=True, keep=False)
                model.ran(world.logs())
            case Step.APPEND:
                model.took(world.append())
            case Step.RETAIN:
                world.retain()
                model.lost(world.logs())
            case Step.LOSE:
                world.lose()
            case Step.ANEW:
                world.anew()
                model.created(world.logs())
            case Step.RECOVER:
                world.recover()
            case Step.UNDO:
                self._undo_one(is_killed=self._rng.random() < 0.3)
            case Step.DISCARD:
                self._discard()
        assert world.logs() == model.files, step

    def undo_all(self) -> None:
        """The latest first."""
        for number in reversed(range(len(self._dirs))):
            self._undo(number, is_killed=False)

    def _run(self, is_killed: bool) -> None:
        world, model = self._world, self._model
        world.recover()
        before, entries, first = model.files, world.entries(), min(world.logs())
        path = world.run(is_killed=is_killed)
        assert path is not None
        model.ran(world.logs())
        kept = KeptRun(model.topic, before, model.files, len(model.appended), entries)
        kept.was_killed = is_killed
        kept.has_deleted = world.entries()[1] != entries[1] or first not in world.logs()
        model.kept.append(kept)
        self._dirs.append(path)

    def _undo_one(self, is_killed: bool) -> None:
        """Mostly the latest one."""
        if self._dirs:
            last = len(self._dirs) - 1
            number = last if self._rng.random() < 0.75 else self._rng.randrange(last + 1)
            self._undo(number, is_killed)

    def _discard(self) -> None:
        left = [n for n, kept in enumerate(self._model.kept) if not kept.is_discarded]
        if left:
            self._world.discard(self._dirs[left[-1]])
            self._model.kept[left[-1]].is_discarded = True

    def _undo(self, number: int, is_killed: bool) -> None:
        world, model, kept = self._world, self._model, self._model.kept[number]
        must, undone = model.undoing(kept)
        files, entries = world.everything(), world.entries()
        reports = world.undo(self._dirs[number], is_killed)
        statuses = [report.status for report in reports or ()]
        self.undoings[_named(reports)] += 1
        if world.everything() == files and must is not Must.UNDO:
            if UndoStatus.UNDONE in statuses:
                raise WrongError(f"undone, and nothing has changed: {reports}")
            return
        if must is Must.STAY:
            raise WrongError(f"the log was changed: {reports}")
        if filled(world.logs()) != filled(undone):
            raise WrongError(f"not as before, with what was appended: {reports}")
        if statuses not in ([UndoStatus.UNDONE], [UndoStatus.AS_BEFORE] if is_killed else []):
            raise WrongError(f"told otherwise: {reports}")
        self._check_entries(kept, entries)
        model.undid(kept, world.logs())

    def _check_entries(self, kept: KeptRun, entries: tuple[int | None, int | None]) -> None:
        """A cleaner entry goes back and never forth; a log start goes back if segments did."""
        (cleaner, start), (cleaner_before, start_before) = entries, kept.entries
        known = None not in (cleaner, cleaner_before)
        cleaners = {min(cleaner or 0, cleaner_before or 0) if known else None}
        if kept.before == kept.after:  # the run had only begun to delete: it is as clean as it was
            cleaners.add(cleaner)
        found = self._world.entries()
        starts = {start_before, start} if kept.was_killed else {start}
        if found[0] not in cleaners or found[1] not in (
            {start_before} if kept.has_deleted else starts
        ):
            raise WrongError(
                f"entries {found}, before the undoing {entries}, the run {kept.entries}"
            )


@contextmanager
def played_in(root: Path) -> Iterator[Callable[[Sequence], Tried]]:
    """What plays a sequence, in a directory of its own below an empty one."""
    with pytest.MonkeyPatch.context() as patches:
        local = open_local_round(root / "work", patches)

        def play(sequence: Sequence) -> Tried:
            directory = root / "sequence"
            directory.mkdir()
            played, problems = Play(sequence, directory, local), list[str]()
            try:
                for step in sequence.steps:
                    played.take(step)
                played.undo_all()
            except (WrongError, AssertionError) as error:
                problems.append(f"{sequence}: {error}")
            shutil.rmtree(directory)
            counts = Counter({f"undoings: {what}": n for what, n in played.undoings.items()})
            counts["steps"] += len(sequence.steps)
            return Tried(problems, counts)

        yield play


def _named(reports: list[UndoReport] | None) -> str:
    if reports is None:
        return "discarded"
    return reports[0].status.value if reports else "nothing kept"
