"""`make demo`, the first thing that a newcomer runs, at a fraction of its size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).parents[2]


def test_the_demonstration_ends_with_its_proof(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--records", "60000", "--keep", str(folder)],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        timeout=600,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    proof = done.stdout.rpartition("Proof")[2]
    assert proof.count("? Yes.") == 4
    assert "NO!" not in done.stdout
    report = json.loads((folder / "run.json").read_text())
    assert {log["topic"] for log in report["logs"] if log["status"] == "cleaned"} >= {"orders"}
    assert report["engine"]["name"] == "spark"
    assert report["totals"]["bytes_after"] < report["totals"]["bytes_before"]
