"""`python -m tests.alerts`: the alerts over a week of made-up samples, by Prometheus' promtool.

promtool is taken from the path, or else out of Debian's package `prometheus`, which is fetched but
not installed. Where neither can be had, that is said, and nothing is held: exit code 0.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compactor.host.output import print_line

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "conf" / "prometheus" / "compactor-alerts.yml"


def main() -> int:
    """The exit code of promtool."""
    with tempfile.TemporaryDirectory(prefix="compactor-alerts-") as name:
        folder = Path(name)
        promtool = promtool_of(folder)
        if promtool is None:
            print_line("promtool cannot be had here: the alerts were not held against a week")
            return 0
        for path in (ALERTS, HERE / "a_week.yml"):
            shutil.copy(path, folder)
        checked = subprocess.run([promtool, "check", "rules", ALERTS.name], cwd=folder, check=False)
        held = subprocess.run([promtool, "test", "rules", "a_week.yml"], cwd=folder, check=False)
        return checked.returncode or held.returncode


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
