"""Two brokers on one host: node_exporter collects their metrics, Prometheus fires their alerts."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from compactor.host.output import print_line
from compactor.outcome.round_report import LogStatus
from compactor.reason_codes import ReasonCode
from compactor.watching.metrics import Ending, metrics_text
from tests.alerts.programs import program_of
from tests.compactor.watching.test_metrics import PLAN, PLANNED, RAN, RUN

_WAIT_S = 30.0
_ALERTS_OF_SECOND = {
    "CompactorLogsSetAside": "run.two.prom",
    "CompactorFailed": "run.three.prom",
}


def second_broker_is_seen(folder: Path, alerts: Path) -> bool | None:
    """Whether just the alerts of the brokers that have a fault fire; None: it cannot be tried."""
    exporter = program_of("prometheus-node-exporter", folder)
    prometheus = program_of("prometheus", folder)
    if exporter is None or prometheus is None:
        print_line("node_exporter or Prometheus cannot be had here: no metrics were collected")
        return None
    collected = folder / "collected"
    collected.mkdir()
    _write_metrics(collected)
    port, port_of_server = _free_port(), _free_port()
    with _running(
        [
            exporter,
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={collected}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        folder / "exporter.txt",
    ):
        wrong = _of_exporter(_asked(f"http://127.0.0.1:{port}/metrics").decode(), collected)
        settings = folder / "prometheus.yml"
        settings.write_text(json.dumps(_settings(port, alerts)))  # YAML as well
        with _running(
            [
                prometheus,
                f"--config.file={settings}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port_of_server}",
            ],
            folder / "prometheus.txt",
        ):
            wrong += _of_alerts(f"http://127.0.0.1:{port_of_server}/api/v1/alerts", collected)
    if "was collected before" in (folder / "exporter.txt").read_text():
        wrong.append("node_exporter dropped series that it had collected before")
    for line in wrong:
        print_line(f"two brokers on one host: {line}")
    return not wrong


def _write_metrics(collected: Path) -> None:
    """Of one broker all is well; of the second a log is set aside; of the third the run failed."""
    aside = replace(RUN.logs[0], status=LogStatus.SET_ASIDE, reason_code=ReasonCode.DAMAGED)
    runs = {
        "one": (RAN, replace(RUN, logs=RUN.logs[:1])),
        "two": (RAN._replace(exit_code=4, status="partial"), replace(RUN, logs=(aside,))),
        "three": (RAN._replace(exit_code=1, status="failed", reason_code="spark-failed"), None),
    }
    now_ms = int(time.time() * 1000)
    for name, (ending, run) in runs.items():
        planned = metrics_text(_at(PLANNED, collected / f"plan.{name}.prom", now_ms), plan=PLAN)
        (collected / f"plan.{name}.prom").write_bytes(planned)
        previous = metrics_text(_at(RAN, collected / f"run.{name}.prom", now_ms))
        ran = metrics_text(_at(ending, collected / f"run.{name}.prom", now_ms), None, run, previous)
        (collected / f"run.{name}.prom").write_bytes(ran)


def _at(ending: Ending, path: Path, now_ms: int) -> Ending:
    return ending._replace(file=str(path), ended_ms=now_ms)


def _of_exporter(text: str, collected: Path) -> list[str]:
    """What it says wrongly of the files: each line of each has to be in what it collected."""
    said = {_normal(line) for line in text.splitlines() if line.startswith("compactor_")}
    files = [path.read_text() for path in sorted(collected.iterdir())]
    lines = [x for file in files for x in file.splitlines() if x.startswith("compactor_")]
    missing = [line for line in lines if _normal(line) not in said]
    wrong = [f"lost in the scrape: {line}" for line in missing[:5]]
    if "node_textfile_scrape_error 0" not in text:
        wrong.append("node_exporter could not read a file")
    return wrong


def _normal(line: str) -> tuple[str, float]:
    name, _, value = line.rpartition(" ")
    labels = name.partition("{")[2].rstrip("}").split('",')
    return name.partition("{")[0] + str(sorted(x.rstrip('"') for x in labels)), float(value)


def _of_alerts(url: str, collected: Path) -> list[str]:
    expected = {(alert, str(collected / file)) for alert, file in _ALERTS_OF_SECOND.items()}
    until = time.monotonic() + _WAIT_S
    firing: set[tuple[str, str]] = set()
    while firing != expected and time.monotonic() < until:
        alerts = json.loads(_asked(url))["data"]["alerts"]
        of = [alert["labels"] for alert in alerts if alert["state"] == "firing"]
        firing = {(labels["alertname"], labels.get("file", "")) for labels in of}
        time.sleep(0.5)  # of another process
    return [] if firing == expected else [f"{sorted(firing)} fire, not {sorted(expected)}"]


def _settings(port: int, alerts: Path) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(alerts)],
        "scrape_configs": [
            {"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        ],
    }


def _asked(url: str) -> bytes:
    """The answer of a server that may have to begin first."""
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            with urlopen(url, timeout=10) as answer:
                body: bytes = answer.read()
                return body
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@contextmanager
def _running(words: list[str], output: Path) -> Iterator[None]:
    with output.open("wb") as out, subprocess.Popen(words, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
