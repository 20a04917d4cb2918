"""How a run under `spark-submit` ends when its Java does, which gets the signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from demo.workload import write_log_dir
from tests.support.command_process import compactor
from tests.support.spark_submit import spark_submit

pytestmark = pytest.mark.spark

ENDING_SECONDS = 60
COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")
SLOWLY = ("--io-limit", "1MB/s")  # so that it is at work when it is hit


class Submitted:
    """A run under spark-submit, whose process is Java."""

    def __init__(self, root: Path, *words: str, records: int = 300_000) -> None:
        log_dir = str(root / "data")
        write_log_dir(log_dir, records, int(time.time() * 1000))
        self.report, self.metrics = root / "report.json", root / "metrics.prom"
        self._out = root / "out"
        entry = compactor("--entry-file").stdout.strip()
        words = (*COMPACTED, *words, "--report", str(self.report), "--metrics", str(self.metrics))
        with self._out.open("wb") as out:
            self.java = subprocess.Popen(
                spark_submit(entry, "run", log_dir, *words),
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )

    def said(self) -> str:
        return self._out.read_text()

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 200
        while text not in self.said():
            assert self.java.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.05)

    def hit(self, number: int) -> dict[str, Any]:
        """Send Java a signal; the report of the run when all of its processes have ended."""
        family = psutil.Process(self.java.pid).children(recursive=True)
        self.java.send_signal(number)
        self.code = self.java.wait(ENDING_SECONDS)
        _, alive = psutil.wait_procs(family, ENDING_SECONDS)
        assert alive == []
        told: dict[str, Any] = json.loads(self.report.read_text())
        return told


@pytest.mark.parametrize("stage", ["scan", "rewrite"])
def test_a_sigterm_interrupts_the_run(tmp_path: Path, stage: str) -> None:
    run = Submitted(tmp_path, *SLOWLY)
    run.wait_for("start engine: done" if stage == "scan" else "resolve: done")
    told = run.hit(signal.SIGTERM)
    assert run.code == 143
    assert (told["status"], told["exit_code"]) == ("interrupted", 143)
    assert (told["reason_code"], told["error"]) == ("interrupted", "terminated")
    assert 'reason_code="interrupted",status="interrupted"} 1.0' in run.metrics.read_text()
    summary = json.loads(run.said().splitlines()[-1])
    assert summary["status"] == "interrupted", "Java waits until all is said"


def test_a_java_that_is_killed_is_no_fault_of_a_disk(tmp_path: Path) -> None:
    run = Submitted(tmp_path, *SLOWLY)
    run.wait_for("resolve: done")
    told = run.hit(signal.SIGKILL)
    assert (told["status"], told["reason_code"]) == ("failed", "spark-failed")
    assert "Spark's Java process is gone" in told["error"]


def test_the_phases_add_up_to_the_whole(tmp_path: Path) -> None:
    run = Submitted(tmp_path, records=30_000)
    assert run.java.wait(200) == 0, run.said()
    told = json.loads(run.report.read_text())
    phases = {phase["name"]: phase["seconds"] for phase in told["phases"]}
    assert sum(phases.values()) == pytest.approx(told["seconds"], abs=0.02)
    assert phases["other"] < 0.2 * told["seconds"], "what takes time has a name"
    assert {"session", "scan", "session-end"} <= phases.keys()
