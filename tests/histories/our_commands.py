"""The compactor's command line in this process, its tasks one after another and without Spark."""

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compactor.cleaning import cleaner_manager
from compactor.command_line import cli
from compactor.host.progress import ProgressSink
from compactor.jobs.engines import Engine
from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan
from tests.histories.cuts import Cuts
from tests.support.local_round import open_local_round

CORES = 2


class Ended(NamedTuple):
    """What a command said at its end."""

    code: int
    document: dict[str, Any]
    said: str  # on standard error

    @property
    def is_unforeseen(self) -> bool:
        return "internal error" in self.document.get("error", "")


@contextlib.contextmanager
def local_rounds(work_dir: Path, tasks: Engine | None = None) -> Iterator[None]:
    """Rounds of this process run their tasks in it meanwhile. tasks: what runs them there."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        local = open_local_round(work_dir, monkeypatch)
        local.cores = CORES
        local.tasks = tasks or local.tasks
        real = cleaner_manager.run_round

        def run_round(
            plan: RoundPlan, settings: cleaner_manager.RunSettings, progress: ProgressSink
        ) -> CleaningReport:
            return real(plan, replace(settings, engine=local), progress)

        monkeypatch.setattr(cleaner_manager, "run_round", run_round)
        yield


def carry_out(words: Sequence[str], cuts: Cuts | None = None) -> Ended:
    """Run `compactor WORDS…`; with cuts, as far as they let it."""
    out, said = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(said),
        cuts.applied() if cuts else contextlib.nullcontext(),
    ):
        code = cli.main([*words, "--format", "json"])
    lines = out.getvalue().splitlines()
    return Ended(code, json.loads(lines[-1]) if lines else {}, said.getvalue())
