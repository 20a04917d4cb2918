"""The command line in this process, without Spark: its tasks run here, one after another."""

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compactor.cleaning import cleaner_manager
from compactor.command_line import cli
from compactor.jobs import engines
from compactor.jobs.engines import Engine
from tests.support.local_round import LocalRound, open_local_round


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    error: str

    @property
    def summary(self) -> dict[str, Any]:
        """The last line of standard output."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


def use_local_rounds(
    patch: pytest.MonkeyPatch, work_dir: Path, cores: int = 2, tasks: Engine | None = None
) -> None:
    """Until the patches are undone. work_dir: for what a round keeps meanwhile."""
    local = open_local_round(work_dir, patch)
    local.cores = cores
    if tasks is not None:
        local.tasks = tasks

    @contextlib.contextmanager
    def here(*_: object, **__: object) -> Iterator[LocalRound]:
        yield local

    patch.setattr(cleaner_manager, "_engine", here)
    patch.setattr(engines, "open_engine", here)


def run_command(*words: object) -> Ended:
    """Carry out the words of a command line."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = cli.main([str(word) for word in words])
    return Ended(code, out.getvalue(), error.getvalue())
