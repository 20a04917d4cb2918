"""conf/prometheus and conf/grafana ask for metrics, labels and codes that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from compactor.outcome.exit_codes import ExitCode
from compactor.watching.metrics import metrics_text
from tests.compactor.watching.test_metrics import PLAN, PLANNED, RAN, RUN, samples

CONF = Path(__file__).parents[3] / "conf"
OF_COLLECTORS = {"instance", "job"}  # labels that Prometheus adds when it collects
IN_EVERY_SERIES = {"file"}


def _rules() -> list[dict[str, Any]]:
    text = (CONF / "prometheus" / "compactor-alerts.yml").read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def _dashboard() -> dict[str, Any]:
    text = (CONF / "grafana" / "compactor-dashboard.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _queries() -> Iterator[Any]:
    for rule in _rules():
        yield pytest.param(rule["expr"], id=rule["alert"])
    for panel in _dashboard()["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")


def _labels_by_metric() -> dict[str, set[str]]:
    run = metrics_text(RAN, run=RUN)
    both = samples(run) | samples(metrics_text(PLANNED, plan=PLAN))
    return {name: {label for label, _ in labels} for name, labels in both}


@pytest.mark.parametrize("query", [*_queries()])
def test_a_query_asks_for_what_there_is(query: str) -> None:
    promql_parser.parse(query)  # raises where it is none
    selectors = re.findall(r"(compactor_\w+)(?:\s*\{([^}]*)\})?", query)
    assert selectors
    known = _labels_by_metric()
    for name, matchers in selectors:
        assert name in known
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert asked <= known[name] | OF_COLLECTORS | IN_EVERY_SERIES, name


@pytest.mark.parametrize("query", [*_queries()])
def test_a_query_keeps_the_files_of_one_host_apart(query: str) -> None:
    """What sums or matches by the host does so by the file as well."""
    for labels in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", query):
        assert "instance" not in labels or "file" in labels.replace(" ", "").split(",")


def test_the_dashboard_or_an_alert_asks_for_every_metric_of_a_log() -> None:
    """But for sizes that others say better."""
    asked = {name for query in _queries() for name in re.findall(r"compactor_\w+", query.values[0])}
    of_logs = {name for name, labels in _labels_by_metric().items() if "partition" in labels}
    assert of_logs - asked == {
        "compactor_log_segments",
        "compactor_run_log_before_bytes",
        "compactor_run_log_after_bytes",
    }


def test_there_are_the_six_alerts_of_the_page() -> None:
    page = (CONF.parent / "docs" / "watching.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(Compactor\w+)` \|", page, re.M)
    assert [rule["alert"] for rule in _rules()] == named
    assert len(named) == 6
    for rule in _rules():
        assert set(rule["annotations"]) == {"summary", "description"}


def test_the_statuses_that_alerts_name_are_words_of_exit_codes() -> None:
    words = {code.status for code in ExitCode}
    (failed,) = (rule for rule in _rules() if rule["alert"] == "CompactorFailed")
    (statuses,) = re.findall(r'status=~"([^"]*)"', failed["expr"])
    assert set(statuses.split("|")) <= words


def test_panels_of_the_dashboard_do_not_lie_on_one_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
