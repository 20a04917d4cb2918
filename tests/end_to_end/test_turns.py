"""Runs in turns on Spark, in place and in a copy: each turn starts a Spark of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compactor import api
from storage.formats import checkpoint, clean_shutdown
from tests.support.command_process import PROJECT
from tests.support.made_log import keyed, make_partition

pytestmark = pytest.mark.spark

KEYS = {"small": "ab", "middle": "abababab", "large": "abababababababab"}
ONE_AT_A_TIME = 4 * 4096 + 600  # for each its size, an eighth of it, four blocks and its map
SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    for topic, keys in KEYS.items():
        segments = {0: [keyed(0, keys)], len(keys): [keyed(len(keys), "a")]}
        make_partition(logs, segments, f"{topic}-0")
    ends = {(topic, 0): len(keys) + 1 for topic, keys in KEYS.items()}
    checkpoint.write(str(logs / checkpoint.REPLICATION), ends)
    clean_shutdown.write(str(logs))
    (tmp_path / "topics.json").write_text(json.dumps(dict.fromkeys(KEYS, SETTINGS)))
    return logs


@pytest.mark.parametrize("output", [False, True])
def test_a_run_in_turns_cleans_every_log(log_dir: Path, tmp_path: Path, output: bool) -> None:
    """disk-full.md: what there is no room for at first comes when other logs have freed some."""
    copy = tmp_path / "copy"
    program = "tests.end_to_end.turns_program", copy if output else log_dir, str(ONE_AT_A_TIME)
    topics = "--topic-configs", tmp_path / "topics.json"
    words = ["--master", "local[1]", "--format", "json", *(("--output", copy) if output else ())]
    done = subprocess.run(
        [sys.executable, "-m", *program, "run", log_dir, *topics, *words],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("start Spark: done") == len(KEYS), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    kept = {log["topic"]: (log["status"], log["records"]["kept"]) for log in told["logs"]}
    assert kept.keys() == KEYS.keys()
    assert {status for status, _ in kept.values()} == {"cleaned"}
    assert sum(phase["name"] == "scan" for phase in told["phases"]) == 1  # of all turns
    if output:
        assert api.verify_manifest(str(copy)) == []
