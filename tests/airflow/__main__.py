"""`make test-airflow`: the example DAG on real logs, by `airflow dags test`, and each task's state.

Every scenario has an Airflow home and a log directory of its own. The expected states are those of
the table in compactor/airflow.py; what the logs are afterwards is asked of `compactor verify`.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from compactor.host.output import print_line
from demo.workload import write_log_dir

ROOT = Path(__file__).parents[2]
AIRFLOW = ROOT / ".venv-airflow" / "bin"
COMPACTOR = ROOT / ".venv" / "bin" / "compactor"
EXAMPLE = ROOT / "conf" / "airflow" / "compact_kafka_logs.py"
DAG_ID = EXAMPLE.stem
COMPACTED = ["--set", "cleanup.policy=compact", "--include", "orders|prices|customers"]
LONGEST_SECONDS = 1800  # of a scenario, on a machine that is busy
_HOLDER = (
    "import fcntl, sys; f = open(sys.argv[1], 'a'); "
    "fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
)
SUCCESS, FAILED, SKIPPED, UPSTREAM_FAILED = "success", "failed", "skipped", "upstream_failed"


class Place(NamedTuple):
    """The folders of one scenario."""

    home: Path
    dags: Path
    log_dir: Path


class Scenario(NamedTuple):
    name: str
    prepare: Callable[[Place], None]  # before the DAG runs
    meanwhile: Callable[[Place, subprocess.Popen[str]], None]
    states: Mapping[str, str]
    said: tuple[str, ...]  # in the log of the tasks
    records: int = 40_000
    options: tuple[str, ...] = ()


def main() -> int:
    """1 where a scenario ended otherwise than expected."""
    wanted = sys.argv[1:]
    failures = 0
    for scenario in _SCENARIOS:
        if wanted and scenario.name not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="compactor-airflow-") as folder:
            problems = _play(scenario, Path(folder))
        print_line(f"{scenario.name}: {'; '.join(problems) or 'as expected'}")
        failures += bool(problems)
    return int(failures > 0)


def _play(scenario: Scenario, folder: Path) -> list[str]:
    place = Place(folder / "home", folder / "dags", folder / "log")
    place.home.mkdir()
    place.dags.mkdir()
    text = EXAMPLE.read_text(encoding="utf-8")
    assert "timedelta(minutes=10)" in text and "/opt/log-compactor/.venv/bin/compactor" in text
    text = text.replace("timedelta(minutes=10)", "timedelta(seconds=1)")
    waits = '"reschedule_after": timedelta(seconds=2), "reschedule_for": timedelta(seconds=8), '
    text = text.replace('"retries"', waits + '"retries"')
    text = text.replace("/opt/log-compactor/.venv/bin/compactor", str(COMPACTOR))
    (place.dags / EXAMPLE.name).write_text(text, encoding="utf-8")
    write_log_dir(str(place.log_dir), scenario.records, int(time.time() * 1000))
    scenario.prepare(place)
    _airflow(place, "db", "migrate").communicate()
    conf = {"log_dirs": [str(place.log_dir)], "options": [*COMPACTED, *scenario.options]}
    running = _airflow(place, "dags", "test", DAG_ID, "--conf", json.dumps(conf))
    helper = threading.Thread(target=scenario.meanwhile, args=(place, running))
    helper.start()
    try:
        out, _ = running.communicate(timeout=LONGEST_SECONDS)
    finally:
        _end(running)
        helper.join()
    problems = [f"{line!r} was not said" for line in scenario.said if line not in out]
    states = _states(place)
    if states != scenario.states:
        problems.append(f"states {states}, expected {dict(scenario.states)}")
    if problems:
        print_line(out)
    return problems


def _end(running: subprocess.Popen[str]) -> None:
    """Of one that has not come to its end, with the command that it waits for."""
    if running.poll() is None:
        begun = psutil.Process(running.pid).children(recursive=True)
        for process in (*begun, running):
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        psutil.wait_procs(begun, timeout=60)
        running.communicate()


def _airflow(place: Place, *words: str) -> subprocess.Popen[str]:
    settings = {
        "AIRFLOW_HOME": str(place.home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(place.dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PATH": f"{AIRFLOW}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.Popen(
        [str(AIRFLOW / "airflow"), *words],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _states(place: Place) -> dict[str, str]:
    with sqlite3.connect(place.home / "airflow.db") as database:
        return dict(database.execute("select task_id, state from task_instance"))


def _nothing(*_: object) -> None:
    """No preparation, no disturbance."""


def _compact(place: Place) -> None:
    words = [str(COMPACTOR), "run", str(place.log_dir), *COMPACTED]
    subprocess.run(words, check=True, capture_output=True)


def _damage(place: Place) -> None:
    path = min((place.log_dir / "orders-0").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def _hold_the_lock(place: Place, running: subprocess.Popen[str]) -> None:
    """As another run would, and until the task has been put off: in another process."""
    words = [sys.executable, "-c", _HOLDER, str(place.log_dir / ".lock")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        holder.stdout.readline()
        while running.poll() is None and _states(place).get("run") != "up_for_reschedule":
            time.sleep(0.2)
        holder.stdin.close()


def _hold_the_lock_for_good(place: Place, running: subprocess.Popen[str]) -> None:
    """In another process, until the DAG has come to its end."""
    words = [sys.executable, "-c", _HOLDER, str(place.log_dir / ".lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):
        running.wait()


def _terminate_the_first_run(place: Place, running: subprocess.Popen[str]) -> None:
    """As soon as a run, not the dry one, has begun to write beside the logs."""
    while running.poll() is None:
        if any(place.log_dir.glob("*/*.cleaned*")):
            for process in psutil.Process(running.pid).children(recursive=True):
                if str(COMPACTOR) in process.cmdline() and "--dry-run" not in process.cmdline():
                    process.send_signal(signal.SIGTERM)
                    return
        time.sleep(0.002)


ALL_DONE = {"plan": SUCCESS, "dry_run": SUCCESS, "run": SUCCESS, "report": SUCCESS}
_SCENARIOS = (
    Scenario("success", _nothing, _nothing, ALL_DONE, ("MB freed in",)),
    Scenario(
        "nothing to do",
        _compact,
        _nothing,
        {"plan": SUCCESS, "dry_run": SKIPPED, "run": SKIPPED, "report": SKIPPED},
        ("Nothing was to be done",),
    ),
    Scenario(
        "lock held",
        _nothing,
        _hold_the_lock,
        ALL_DONE,
        ("Somebody else is at work", "Rescheduling task", "MB freed in"),
    ),
    Scenario(
        "lock held for good",
        _nothing,
        _hold_the_lock_for_good,
        {"plan": SUCCESS, "dry_run": SUCCESS, "run": FAILED, "report": UPSTREAM_FAILED},
        ("Somebody else is at work", "Put off since"),
    ),
    Scenario(
        "part set aside",
        _damage,
        _nothing,
        {"plan": SUCCESS, "dry_run": FAILED, "run": UPSTREAM_FAILED, "report": UPSTREAM_FAILED},
        ("Not all is well:", "orders-0 set-aside: "),
    ),
    Scenario(
        "threshold",
        _nothing,
        _nothing,
        {"plan": FAILED, "dry_run": UPSTREAM_FAILED, "run": UPSTREAM_FAILED,
         "report": UPSTREAM_FAILED},
        ("A condition holds:", "logs > 1"),
        options=("--fail-if", "logs > 1"),
    ),
    Scenario(
        "killed in the middle",
        _nothing,
        _terminate_the_first_run,
        ALL_DONE,
        ("Failed with exit code 143 (interrupted)", "MB freed in"),
        records=2_000_000,
    ),
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
