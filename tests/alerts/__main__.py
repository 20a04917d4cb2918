"""`python -m tests.alerts`: the alerts over a week of made-up samples, by Prometheus' promtool.

The metrics are held to its conventions as well.

promtool is taken from the path, or else out of Debian's package `prometheus`, which is fetched but
not installed. Where neither can be had, that is said, and nothing is held: exit code 0.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compactor.host.output import print_line
from compactor.watching.metrics import Ending, metrics_text
from tests.compactor.watching.test_metrics import PLAN, PLANNED, RUN

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "conf" / "prometheus" / "compactor-alerts.yml"
RAN = Ending("run", 0, "ok", "done", 5_000_000, 1.5, "0.1.0")


def main() -> int:
    """1 where promtool finds anything."""
    with tempfile.TemporaryDirectory(prefix="compactor-alerts-") as name:
        folder = Path(name)
        promtool = promtool_of(folder)
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
        return int(any((checked.returncode, held.returncode, *codes)))


def promtool_of(folder: Path) -> str | None:
    """Where it is; folder: for what is fetched. None where it cannot be had."""
    return shutil.which("promtool") or _fetched(folder)


def _fetched(folder: Path) -> str | None:
    """promtool out of Debian's package; None where there is no Debian, or no such package."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return None
    folder.chmod(0o755)  # apt fetches as a user of its own
    fetched = subprocess.run(
        ["apt-get", "download", "-qq", "prometheus"], cwd=folder, check=False, capture_output=True
    )
    packages = list(folder.glob("prometheus_*.deb"))
    if fetched.returncode != 0 or not packages:
        return None
    subprocess.run(["dpkg", "-x", packages[0].name, "package"], cwd=folder, check=True)
    return str(folder / "package" / "usr" / "bin" / "promtool")


if __name__ == "__main__":
    sys.exit(main())
