"""The operator's folder in the directory for temporary files: whose it is, and what removes it.

Airflow is not installed here: the few names of it that the module takes are stood in for.
`make test-airflow` runs the operator in a real one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compactor.jobs.work_dir import open_work_dir

LOADED = """
import sys, types
for name in ("airflow", "airflow.sdk", "airflow.sdk.exceptions"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["airflow.sdk"].BaseOperator = object
for name in ("", "Fail", "Reschedule", "Skip"):
    setattr(sys.modules["airflow.sdk.exceptions"], f"Airflow{name}Exception", Exception)
from compactor import airflow
"""
HOLDING = """
import os, tempfile
with tempfile.TemporaryDirectory(prefix=airflow._FOLDER) as folder, airflow._owned(folder):
    print(folder, flush=True)
    sys.stdin.read()
"""


def started(tmp_path: Path, code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", LOADED + code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("by", ["a task", "a run"])
def test_what_a_killed_worker_left_is_removed_by_the_next(by: str, tmp_path: Path) -> None:
    def removed() -> None:
        if by == "a run":
            with open_work_dir(str(tmp_path), "cafe"):
                pass
        else:
            started(tmp_path, "airflow._remove_left_folders()").communicate(timeout=60)

    with started(tmp_path, HOLDING) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        removed()
        assert os.listdir(tmp_path) == [folder.name], "of a live task it stays"
        holder.kill()
    removed()
    assert os.listdir(tmp_path) == []
