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

ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
USER = 1000660000  # as OpenShift gives them
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def temporary() -> Iterator[Path]:
    with directory_for_all() as path:
        yield path


NAMELESS = ["unshare", "--user", f"--map-user={USER}", "--map-group=0"]
READ_ONLY = """
mount --make-rprivate /
for path in "$1" "$2"; do mount --bind "$path" "$path"; done
for path in $(awk '{ print $2 }' /proc/mounts | sort -u); do
  case $path in
    /proc* | /sys* | /dev | /dev/[!s]* | "$1" | "$2") ;;
    *) mount -o remount,bind,ro "$path" ;;
  esac
done
shift 2
exec "$@"
"""


def ended(
    temporary: Path, *words: object, on: tuple[str, ...] = (), **environ: str
) -> "subprocess.CompletedProcess[str]":
    """How a command ended: in a name space of users, in which this one has a number alone."""
    return subprocess.run(
        [*on, *NAMELESS, sys.executable, "-m", "compactor", *map(str, words)],
        cwd=temporary,  # in which nothing is to be left
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_it_plans_and_runs(temporary: Path, tmp_path: Path, engine: str) -> None:
    (temporary / "tmp").mkdir()
    tmpdir = str(temporary / "tmp")
    root, options = build(tmp_path / "data"), ("--include", "t", "--set", "cleanup.policy=compact")
    for words in (
        ["plan", root, *options],
        ["run", root, *options, "--engine", engine, "--dry-run"],
        ["run", root, *options, "--engine", engine],
    ):
        done = ended(temporary, *words, TMPDIR=tmpdir)
        summary = json.loads(done.stdout.splitlines()[-1])
        assert (summary["status"], done.returncode) == ("ok", 0), done.stderr
    assert summary["engine"]["name"] == engine
    assert [path.name for path in temporary.iterdir()] == ["tmp"]
    assert {path.name for path in (temporary / "tmp").iterdir()} <= {f"log-compactor-{USER}"}


@pytest.mark.spark
def test_doctor_says_what_would_help(temporary: Path) -> None:
    (temporary / "tmp").mkdir()
    tmpdir = str(temporary / "tmp")
    looked = ended(temporary, "doctor", "--start-spark", "--format", "json", TMPDIR=tmpdir)
    checks = {check["subject"]: check for check in json.loads(looked.stdout)["machine"]}
    assert checks["user"]["grade"] == "warn"
    assert str(USER) in checks["user"]["found"]
    assert "Set HOME" in checks["user"]["advice"]
    assert checks["a job of Spark"]["grade"] == "ok"
    assert [path.name for path in temporary.iterdir()] == ["tmp"]
    assert [path.name for path in (temporary / "tmp").iterdir()] == [f"log-compactor-{USER}"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_log_directory_and_a_work_directory_are_all_that_has_to_be_writable(
    temporary: Path, tmp_path: Path, engine: str
) -> None:
    (temporary / "work").mkdir()
    root, options = build(tmp_path / "data"), ("--include", "t", "--set", "cleanup.policy=compact")
    name_space = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", READ_ONLY, "sh")
    on = (*name_space, str(root), str(temporary / "work"))
    run = ["run", root, *options, "--engine", engine]
    for words in (["plan", root, *options], run):
        done = ended(temporary, *words, on=on)
        assert done.returncode == 1
        assert done.stderr.endswith(
            "compactor: no directory for temporary files can be written to: set TMPDIR to one that "
            "this user can write to, or give --work-dir. Nothing was changed.\n"
        )
    if engine == "spark":
        looked = ended(temporary, "doctor", "--start-spark", "--format", "json", on=on)
        checks = {check["subject"]: check for check in json.loads(looked.stdout)["machine"]}
        assert checks["temporary files"]["grade"] == checks["a job of Spark"]["grade"] == "fail"
    done = ended(temporary, *run, "--work-dir", temporary / "work", on=on)
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["status"], done.returncode) == ("ok", 0), done.stderr
    assert summary["totals"]["logs"]["cleaned"] > 0
    assert os.listdir(temporary / "work") == []
