"""`python -m tests.scheduled.week`: a week of nights without a fault, then one fault after another.

Nothing may be left over that grows, no alert may fire in the week, and one has to for each fault,
as long as it lasts. The alerts are those of conf/prometheus, by Prometheus' promtool, over the
metrics that the commands left.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compactor.host.output import print_line
from tests.alerts.__main__ import ALERTS
from tests.alerts.programs import program_of
from tests.scheduled.faults import FAULTS, NIGHT, NOON, Fault
from tests.scheduled.nights import BEGIN_MS, Host, leftovers

DAY = 24
BIG, SMALL = "1e9", "1e4"  # bytes: what the alert takes for a large log, and what is one here
Series = dict[str, list[str]]  # values by hour
Window = tuple[str, int, int]  # an alert, from an hour on, to another


def main() -> int:
    """1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.scheduled.week", description=__doc__)
    parser.add_argument("--calm", type=int, default=7, help="nights before the first fault")
    parser.add_argument("--fault", action="append", choices=[fault.name for fault in FAULTS])
    wanted = parser.parse_args()
    faults = [fault for fault in FAULTS if wanted.fault is None or fault.name in wanted.fault]
    with tempfile.TemporaryDirectory(prefix="week-") as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", f"{name}/cache")
        problems, series = _lived_through(Host(Path(name), patch), wanted.calm, faults)
        windows = _expected(wanted.calm, faults)
        print_line(f"{wanted.calm} nights without a fault, then {len(faults)} faults")
        code = _held_against(Path(name), series, windows)
    for problem in problems:
        print_line(problem)
    print_line(f"{len(problems)} problems with what is left over")
    return code or bool(problems)


def _lived_through(host: Host, calm: int, faults: Sequence[Fault]) -> tuple[list[str], Series]:
    days = calm + sum(fault.days for fault in faults)
    of_hour = {
        first + hour: (fault, hour)
        for fault, first in _begins(calm, faults)
        for hour in range(fault.days * DAY)
    }
    problems: list[str] = []
    series: Series = defaultdict(list)
    sizes: list[set[str]] = []
    host.append_a_day()
    for hour in range(days * DAY):
        host.set_clock(hour)
        fault, since = of_hour.get(hour, (None, 0))
        if hour % DAY == NOON:
            host.append_a_day()
        if fault is None or not fault.at(host, since):
            _as_ever(host, hour)
            if hour % DAY == NIGHT:
                problems += [f"night {hour // DAY}: left over: {name}" for name in leftovers(host)]
                sizes.append(_files_that_stay(host))
        if fault is None or since not in fault.unplanned:
            assert host.plan() in (0, 4), host.said
        _sample(host, hour, series)
    begin, end = sizes[2:3], sizes[-1:]  # the first two nights keep more each, for --keep-for
    new = set[str]().union(*end) - set[str]().union(*begin)
    problems += [f"stays beside the logs: {name}" for name in sorted(new)]
    return problems, series


def _as_ever(host: Host, hour: int) -> None:
    if hour % DAY == NIGHT:
        assert host.run() == 0, host.said


def _begins(calm: int, faults: Sequence[Fault]) -> list[tuple[Fault, int]]:
    """The first hour of each."""
    begins, day = [], calm
    for fault in faults:
        begins.append((fault, day * DAY))
        day += fault.days
    return begins


def _expected(calm: int, faults: Sequence[Fault]) -> list[Window]:
    return [
        (fault.alert, first + fault.fires[0], first + fault.fires[1])
        for fault, first in _begins(calm, faults)
    ]


def _files_that_stay(host: Host) -> set[str]:
    """Reports, metrics, kept runs (by number), and what is remembered from one run to the next."""
    root = host.paths.work_dir.parent
    kept = {f"kept run {number}" for number, _ in enumerate(host.kept.iterdir())}
    remembered = {str(path) for path in (root / "cache").rglob("*") if path.is_file()}
    others = {*host.paths.reports.iterdir(), *host.paths.metrics.iterdir()}
    beside = {p for p in host.paths.log_dir.iterdir() if p.is_file() and p.name != ".lock"}
    return kept | remembered | {str(path) for path in others | beside}


def _sample(host: Host, hour: int, series: Series) -> None:
    """Of every metric there is; times are counted from the first midnight."""
    for path in host.paths.metrics.iterdir():
        for family in text_string_to_metric_families(path.read_text()):
            for sample in family.samples:
                labels = ", ".join(f"{k}={json.dumps(v)}" for k, v in sample.labels.items())
                labels += ', instance="host"' if labels else 'instance="host"'
                values = series[f"{sample.name}{{{labels}}}"]
                values += ["_"] * (hour - len(values))
                is_time = sample.name.endswith("timestamp_seconds")
                values.append(repr(sample.value - BEGIN_MS / 1000 if is_time else sample.value))


def _held_against(folder: Path, series: Series, windows: Sequence[Window]) -> int:
    """By promtool: at each hour the alerts that are firing, and no others. Its exit code."""
    promtool = program_of("promtool", folder)
    if promtool is None:
        print_line("promtool cannot be had here: no alert was held against these nights")
        return 0
    rules = ALERTS.read_text(encoding="utf-8")
    assert BIG in rules
    (folder / "alerts.yml").write_text(rules.replace(BIG, SMALL))
    hours = max(map(len, series.values()))
    given = [
        {"series": name, "values": " ".join(values + ["stale"] * (len(values) < hours))}
        for name, values in series.items()
    ]
    asked = []
    for hour in range(hours):
        firing = sorted({alert for alert, begin, end in windows if begin <= hour < end})
        expr = 'count by (alertname) (ALERTS{alertstate="firing"})'
        samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in firing]
        asked.append({"expr": expr, "eval_time": f"{hour}h", "exp_samples": samples})
    test = {"interval": "1h", "input_series": given, "promql_expr_test": asked}
    document = {"rule_files": ["alerts.yml"], "evaluation_interval": "1h", "tests": [test]}
    (folder / "nights.json").write_text(json.dumps(document))  # YAML as well
    words = [promtool, "test", "rules", "nights.json"]
    return subprocess.run(words, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
