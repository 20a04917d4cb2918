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


NAMELESS = ["unshare", "--user", f"--map-user={USER}", "--map-group=0"]
READ_ONLY = """
mount --make-rprivate /
for path in "$1" "$2"; do mount --bind "$path" "$path"; done
for path in $(awk '{ print $2 }' /proc/mounts | sort -u); do
  case $path in
    /proc* | /sys* | /dev* | "$1" | "$2") ;;
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


def test_it_plans_runs_and_is_told_by_doctor_what_would_help(
    temporary: Path, tmp_path: Path
) -> None:
    (temporary / "tmp").mkdir()
    tmpdir = str(temporary / "tmp")
    root, options = build(tmp_path / "data"), ("--include", "t", "--set", "cleanup.policy=compact")
    for words in (
        ["plan", root, *options],
        ["run", root, *options, "--dry-run"],
        ["run", root, *options],
    ):
        done = ended(temporary, *words, TMPDIR=tmpdir)
        summary = json.loads(done.stdout.splitlines()[-1])
        assert (summary["status"], done.returncode) == ("ok", 0), done.stderr
    looked = ended(temporary, "doctor", "--start-spark", "--format", "json", TMPDIR=tmpdir)
    checks = {check["subject"]: check for check in json.loads(looked.stdout)["machine"]}
    assert checks["user"]["grade"] == "warn"
    assert str(USER) in checks["user"]["found"]
    assert "Set HOME" in checks["user"]["advice"]
    assert checks["a job of Spark"]["grade"] == "ok"
    assert [path.name for path in temporary.iterdir()] == ["tmp"]
    assert [path.name for path in (temporary / "tmp").iterdir()] == [f"log-compactor-{USER}"]


def test_a_log_directory_and_a_work_directory_are_all_that_has_to_be_writable(
    temporary: Path, tmp_path: Path
) -> None:
    (temporary / "work").mkdir()
    root, options = build(tmp_path / "data"), ("--include", "t", "--set", "cleanup.policy=compact")
    name_space = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", READ_ONLY, "sh")
    on = (*name_space, str(root), str(temporary / "work"))
    for words in (["plan", root, *options], ["run", root, *options]):
        done = ended(temporary, *words, on=on)
        assert done.returncode == 1
        assert done.stderr.endswith(
            "compactor: no directory for temporary files can be written to: set TMPDIR to one that "
            "this user can write to, or give --work-dir. Nothing was changed.\n"
        )
    looked = ended(temporary, "doctor", "--start-spark", "--format", "json", on=on)
    checks = {check["subject"]: check for check in json.loads(looked.stdout)["machine"]}
    assert checks["temporary files"]["grade"] == checks["a job of Spark"]["grade"] == "fail"
    done = ended(temporary, "run", root, *options, "--work-dir", temporary / "work", on=on)
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["status"], done.returncode) == ("ok", 0), done.stderr
    assert summary["totals"]["logs"]["cleaned"] > 0
    assert os.listdir(temporary / "work") == []
