"""Loads and compiles everything before another user is at work.

Python and its packages may stand where only the user who started the tests may read.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import compactor
import storage
from tests.compactor.plan_logs import Shape, build
from tests.obstacles.place import COMPACTED
from tests.support.local_command import run_command, use_local_rounds

_ONLY_WITH_MORE = ("compactor.__main__", "compactor.airflow")


def load_all(root: Path) -> None:
    """root: a new directory."""
    for package in (compactor, storage):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if found.name not in _ONLY_WITH_MORE:
                import_module(found.name)
    build(root / "data", Shape(COMPACTED, 0), Shape(COMPACTED, 1))
    with pytest.MonkeyPatch.context() as patches:
        use_local_rounds(patches, root / "work")
        for command in ("doctor", "plan", "run", "recover"):
            run_command(command, root / "data", "--format", "json")
        run_command("log", "roll", root / "data", f"{COMPACTED}-0", "--yes")
