"""What the campaigns start is what conf/ has, and their faults are told apart by their alerts."""

import shlex
from pathlib import Path

import yaml

from tests.alerts.__main__ import ALERTS
from tests.scheduled.cron_line import Paths, environment, plan_line, run_line
from tests.scheduled.faults import FAULTS

PATHS = Paths(Path("/d"), Path("/r"), Path("/m"), Path("/w"))


def test_the_lines_are_those_of_cron_with_other_paths() -> None:
    words = shlex.split(run_line(PATHS, "--any-clock"))
    assert words[:5] == ["timeout", "--signal=TERM", "--kill-after=5m", "6h", "nice"]
    at = words.index("$COMPACTOR")
    assert words[at + 1 : at + 6] == ["run", "/d", "--any-clock", "--work-dir", "/w"]
    assert words[-4:] == ["--report", "/r/last.json", "--metrics", "/m/compactor-run.prom"]
    assert shlex.split(plan_line(PATHS))[:3] == ["$COMPACTOR", "plan", "/d"]
    assert environment()["SHELL"] == "/bin/sh"


def test_each_fault_has_an_alert_that_there_is() -> None:
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    assert {fault.alert for fault in FAULTS} <= {rule["alert"] for rule in rules}
    assert all(
        0 <= begin < end <= fault.days * 24 for fault in FAULTS for begin, end in [fault.fires]
    )
