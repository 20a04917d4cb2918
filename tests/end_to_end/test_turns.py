"""Runs in turns on Spark, in place and in a copy: each turn starts a Spark of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compactor import api
from storage.formats import checkpoint, clean_shutdown
from tests.end_to_end import turns_program
from tests.support.command_process import PROJECT
from tests.support.made_log import keyed, make_partition
from tests.support.spark_submit import spark_submit

pytestmark = pytest.mark.spark

KEYS = {"small": "ab", "middle": "abababab", "large": "abababababababab"}
ONE_AT_A_TIME = 4 * 4096 + 600  # for each its size, an eighth of it, four blocks and its map
MINUTES = 10
ONE_AT_FIRST = 0.7  # bytes a second: in seven tenths of these minutes there is time for one log
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


class Way(NamedTuple):
    """What a run has too little of, and what starts it."""

    lack: str
    submitted: bool
    output: bool


WAYS = [
    Way("room", submitted=False, output=False),
    Way("room", submitted=False, output=True),
    Way("room", submitted=True, output=False),
    Way("minutes", submitted=True, output=True),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_run_in_turns_cleans_every_log(log_dir: Path, tmp_path: Path, way: Way) -> None:
    """disk-full.md, and --max-minutes: what is left out at first comes in a later turn."""
    copy = tmp_path / "copy"
    words = ["run", log_dir, "--topic-configs", tmp_path / "topics.json", "--format", "json"]
    words += ["--output", copy] if way.output else []
    if way.lack == "room":
        lack = ["room", copy if way.output else log_dir, ONE_AT_A_TIME]
        turns = len(KEYS)
    else:
        lack, turns = ["pace", ONE_AT_FIRST], 2
        words += ["--max-minutes", MINUTES]
    done = started(way.submitted, [*lack, *words])
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr  # spark-submit puts all that Python says in one
    assert said.count("start engine: done") == turns, said
    told: dict[str, Any] = json.loads(said[said.index('{"schema_version"') :].splitlines()[0])
    kept = {log["topic"]: (log["status"], log["records"]["kept"]) for log in told["logs"]}
    assert kept.keys() == KEYS.keys()
    assert {status for status, _ in kept.values()} == {"cleaned"}
    assert sum(phase["name"] == "scan" for phase in told["phases"]) == 1  # of all turns
    if way.output:
        assert api.verify_manifest(str(copy)) == []


def started(submitted: bool, words: list[object]) -> "subprocess.CompletedProcess[str]":
    """The program with these words, by spark-submit or by Python alone, when it has ended."""
    program = Path(turns_program.__file__)
    own = [sys.executable, "-m", turns_program.__name__, *map(str, words), "--master", "local[1]"]
    environ = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        spark_submit(program, *words) if submitted else own,
        cwd=PROJECT,
        env={**os.environ, **environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
