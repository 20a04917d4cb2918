"""The command as a shell runs it: exit code, last line, streams; mistakes change nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_process import LAUNCHER, PROJECT, compactor
from tests.support.file_states import state_of
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir
from tests.support.spark_submit import spark_submit

IS_ROOT = os.geteuid() == 0
NOBODY = 65534
# root, but held to the permissions of files as everybody else is
WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
UNPRIVILEGED = (*WITHOUT_PRIVILEGES, *LAUNCHER) if IS_ROOT else LAUNCHER
COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")


def submitted(*words: object, **conf: object) -> subprocess.CompletedProcess[str]:
    """By spark-submit, with these options of Spark."""
    return subprocess.run(
        spark_submit(compactor("--entry-file").stdout.strip(), *words, conf=conf),
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


PHASES_IN_SPARK = ("scan", "resolve", "rewrite")


def described(event_log: Path, kind: str) -> list[str]:
    """The descriptions of jobs or stages in Spark's event log, as its history server shows them."""
    [path] = [
        path for path in event_log.rglob("*") if path.name.startswith(("events_1_", "local-"))
    ]
    events = [json.loads(line) for line in path.read_text().splitlines()]
    found = [event["Properties"] for event in events if event["Event"] == kind]
    return [properties["spark.job.description"] for properties in found]


def forbid(path: Path, mode: int) -> None:
    """Give path to somebody else where we are root, and leave everybody these permissions."""
    if IS_ROOT:
        os.chown(path, NOBODY, NOBODY)
    path.chmod(mode)


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def assert_refused(done: subprocess.CompletedProcess[str], code: int, *told: str) -> None:
    """One line on standard error that says what is wrong, and a summary that says the same."""
    assert done.returncode == code, done
    [line] = done.stderr.splitlines()
    assert line.startswith("compactor: ")
    for part in (*told, "othing was changed"):
        assert part in line
    assert summary(done)["exit_code"] == code
    assert summary(done)["error"].rstrip(".?") in line


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["plan", "LOG_DIR"], ["run", "LOG_DIR", "--as-of", "x"]]
)
def test_light_commands_stay_light(log_dir: Path, words: list[str]) -> None:
    """Neither Spark nor Arrow nor pandas is loaded for them, and arrays for a run alone."""
    heavy = ["pyspark", "pyarrow", "pandas", "fsspec", "pydantic"]
    heavy += ["numpy", "numba"] if words[0] != "run" else []
    script = (
        "import sys\nfrom compactor.command_line.cli import main\nmain(sys.argv[1:])\n"
        f"loaded = [name for name in {heavy} if name in sys.modules]\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    words = [str(log_dir) if word == "LOG_DIR" else word for word in words]
    done = compactor(*words, launcher=(sys.executable, "-c", script))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_driver_loads_no_compiler(tmp_path: Path, command: str) -> None:
    """It leaves what needs kernels to its tasks; a log of several segments is no exception."""
    segments = ((Batch((Message(b"k", b"v", 1),)),),) * 3
    build_log_dir(tmp_path, BuiltLog("orders", 0, segments))
    script = (
        "import sys\nfrom compactor.command_line.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "import compactor.cleaning.assembly\n"  # which joins pieces, of larger logs
        "heavy = ('numba', 'pandas', 'pyarrow', 'pyspark')\n"
        "sys.exit(f'{[name for name in heavy if name in sys.modules]}')"
    )
    words = command, tmp_path, *COMPACTED, "--assume-fully-replicated"
    done = compactor(*words, launcher=(sys.executable, "-c", script))
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.skipif(
    IS_ROOT and shutil.which("setpriv") is None, reason="root cannot do without its privileges"
)
class TestWithoutPermission:
    def test_to_read(self, log_dir: Path) -> None:
        forbid(log_dir, 0o000)
        for command in ("plan", "verify", "run"):
            done = compactor(command, log_dir, launcher=UNPRIVILEGED)
            assert_refused(done, 2, f"LOG_DIR {log_dir}: Permission denied")

    def test_to_write(self, log_dir: Path) -> None:
        forbid(log_dir, 0o555)
        done = compactor("run", log_dir, launcher=UNPRIVILEGED)
        assert_refused(done, 2, "no permission to write; --dry-run and plan only read")
        planned = compactor("plan", log_dir, *COMPACTED, launcher=UNPRIVILEGED)
        assert planned.returncode == 0
        said = " ".join(planned.stdout.split())
        assert "A run would be refused: " + done.stderr.partition(": ")[2].partition(".")[0] in said

    def test_to_read_a_partition(self, log_dir: Path) -> None:
        forbid(log_dir / "orders-0", 0o000)
        done = compactor("plan", log_dir, *COMPACTED, launcher=UNPRIVILEGED)
        assert done.returncode == 4
        assert "Permission denied" in done.stdout and "start the broker" not in done.stdout


@pytest.mark.spark
class TestRound:
    """With Spark, one after another over the same log."""

    def test_dry_run_run_and_nothing_left_to_do(self, log_dir: Path, tmp_path: Path) -> None:
        before = state_of(log_dir)
        common = [log_dir, *COMPACTED, "--as-of", "5000", "--any-clock", "--master", "local[1]"]
        dry = compactor("run", *common, "--dry-run", "--format", "json")
        assert dry.returncode == 0, dry.stderr
        assert state_of(log_dir) == before
        foretold = json.loads(dry.stdout)
        assert foretold["logs"][0]["status"] == "would-clean"

        real = compactor("run", *common, "--report", tmp_path / "r.json")
        assert real.returncode == 0, real.stderr
        done = json.loads((tmp_path / "r.json").read_text())
        assert done["logs"][0]["status"] == "cleaned"
        # fifteen records of four keys, of which offsets 11 to 14 are the last
        assert done["totals"]["records"]["read"] == 15
        assert done["totals"]["records"]["kept"] == 4
        for count in ("records", "batches", "bytes_before", "bytes_after", "segments_after"):
            assert done["totals"][count] == foretold["totals"][count], count
        assert summary(real)["totals"] == done["totals"]
        assert "Traceback" not in real.stderr

        assert compactor("verify", log_dir).returncode == 0
        again = compactor("run", *common)
        assert again.returncode == 0
        assert summary(again)["totals"]["logs"]["passed-over"] == 1

    def test_spark_submit_does_the_same_with_the_same_codes(
        self, log_dir: Path, tmp_path: Path
    ) -> None:
        words = ("--as-of", "5000", "--any-clock", "--log-format", "json")
        (tmp_path / "events").mkdir()
        events = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": tmp_path / "events",
        }
        done = submitted("run", log_dir, *COMPACTED, *words, **events)
        assert done.returncode == 0, done.stderr
        assert " INFO " not in done.stderr  # what Spark says of each job and task
        lines = [
            json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"time"')
        ]
        assert {line["run_id"] for line in lines} == {summary(done)["run_id"]}
        assert {"scan", "resolve", "rewrite", "swap"} <= {line["phase"] for line in lines}
        phases = [f"compactor {lines[0]['run_id']} {p}: orders-0" for p in PHASES_IN_SPARK]
        assert described(tmp_path / "events", "SparkListenerJobStart")[-3:] == phases
        assert described(tmp_path / "events", "SparkListenerStageSubmitted")[-3:] == phases
        assert summary(done)["totals"]["records"]["kept"] == 4
        wrong = submitted("run", log_dir, "--as-of", "x")
        assert wrong.returncode == 2, wrong.stderr
        assert summary(wrong)["exit_code"] == 2
        assert compactor("verify", log_dir).returncode == 0

    def test_spark_submit_may_keep_no_blocks_in_a_log_directory(self, log_dir: Path) -> None:
        """Each stays a directory there that no broker knows: it would not start (F-1.4)."""
        before = state_of(log_dir)
        blocks = {"spark.local.dir": f"/var/tmp,{log_dir}/blocks"}
        refused = submitted("run", log_dir, *COMPACTED, **blocks)
        assert refused.returncode == 2, refused.stderr
        told = f"spark.local.dir {log_dir}/blocks: inside of log directory {log_dir}"
        assert told in refused.stdout
        assert state_of(log_dir) == before


@pytest.fixture
def damaged_far_behind(log_dir: Path) -> Path:
    """A log that is more than a pipe or a buffer holds, and damaged at its end: who reads all of
    it ends in an error."""
    log = log_dir / "orders-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes() * 400 + b"damage" * 20)
    return log


def dump_into(where: str, log: Path) -> subprocess.CompletedProcess[str]:
    words = f"{sys.executable} -m compactor dump {log} {where}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", words], capture_output=True, text=True, cwd=PROJECT)


def test_dump_stops_where_nothing_more_can_be_written(damaged_far_behind: Path) -> None:
    done = dump_into("> /dev/full", damaged_far_behind)
    told = "compactor: standard output: No space left on device. The command itself has ended.\n"
    assert (done.returncode, done.stderr) == (1, told)
