"""`python -m tests.alerts`: the alerts over a week of made-up samples, by Prometheus' promtool.

The metrics are held to its conventions as well, and those of two brokers on one host are collected
by node_exporter and asked of Prometheus.

promtool, Prometheus and node_exporter are taken from the path, or else out of Debian's packages,
which are fetched but not installed. What cannot be had is named, and holds nothing: exit code 0.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compactor.host.output import print_line
from compactor.watching.metrics import metrics_text
from tests.alerts.one_host import second_broker_is_seen
from tests.alerts.programs import program_of
from tests.compactor.watching.test_metrics import PLAN, PLANNED, RAN, RUN

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "conf" / "prometheus" / "compactor-alerts.yml"


def main() -> int:
    """1 where promtool finds anything, or the second broker's alert does not fire."""
    with tempfile.TemporaryDirectory(prefix="compactor-alerts-") as name:
        folder = Path(name)
        promtool = program_of("promtool", folder)
        if promtool is None:
            print_line("promtool cannot be had here: the alerts were not held against a week")
            return 0
        for path in (ALERTS, HERE / "a_week.yml"):
            shutil.copy(path, folder)
        checked = subprocess.run([promtool, "check", "rules", ALERTS.name], cwd=folder, check=False)
        texts = (metrics_text(PLANNED, plan=PLAN), metrics_text(RAN, run=RUN))
        words = [promtool, "check", "metrics"]
        codes = [subprocess.run(words, input=text, check=False).returncode for text in texts]
        held = subprocess.run([promtool, "test", "rules", "a_week.yml"], cwd=folder, check=False)
        is_seen = second_broker_is_seen(folder, ALERTS)
        return int(any((checked.returncode, held.returncode, *codes)) or is_seen is False)


if __name__ == "__main__":
    sys.exit(main())
