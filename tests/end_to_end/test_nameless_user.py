"""A run by a user that no passwd file knows, without HOME: as in many a container."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compactor.plan_logs import build
from tests.support.unprivileged import directory_for_all

pytestmark = pytest.mark.spark

USER = 1000660000  # as OpenShift gives them
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def temporary() -> Iterator[Path]:
    with directory_for_all() as path:
        yield path


def ended(temporary: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """How a command ended: in a name space of users, in which this one has a number alone."""
    command = ["unshare", "--user", f"--map-user={USER}", "--map-group=0"]
    return subprocess.run(
        [*command, sys.executable, "-m", "compactor", *map(str, words)],
        cwd=temporary,  # in which nothing is to be left
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "TMPDIR": str(temporary / "tmp"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_it_plans_runs_and_is_told_by_doctor_what_would_help(
    temporary: Path, tmp_path: Path
) -> None:
    (temporary / "tmp").mkdir()
    root, options = build(tmp_path / "data"), ("--include", "t", "--set", "cleanup.policy=compact")
    for words in (
        ["plan", root, *options],
        ["run", root, *options, "--dry-run"],
        ["run", root, *options],
    ):
        done = ended(temporary, *words)
        summary = json.loads(done.stdout.splitlines()[-1])
        assert (summary["status"], done.returncode) == ("ok", 0), done.stderr
    looked = ended(temporary, "doctor", "--start-spark", "--format", "json")
    checks = {check["subject"]: check for check in json.loads(looked.stdout)["machine"]}
    assert checks["user"]["grade"] == "warn"
    assert str(USER) in checks["user"]["found"]
    assert "Set HOME" in checks["user"]["advice"]
    assert checks["a job of Spark"]["grade"] == "ok"
    assert [path.name for path in temporary.iterdir()] == ["tmp"]
    assert [path.name for path in (temporary / "tmp").iterdir()] == [f"log-compactor-{USER}"]
