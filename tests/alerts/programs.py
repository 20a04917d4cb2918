"""Programs of Prometheus: from the path, or out of Debian's packages."""

import shutil
import subprocess
from pathlib import Path

_PACKAGES = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
}


def program_of(name: str, folder: Path) -> str | None:
    """Where it is; folder: for what is fetched. None where it cannot be had."""
    unpacked = folder / "package" / "usr" / "bin" / name
    return shutil.which(name) or _fetched(_PACKAGES[name], unpacked, folder)


def _fetched(package: str, program: Path, folder: Path) -> str | None:
    """None where there is no Debian, or no such package."""
    if program.exists():
        return str(program)
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return None
    folder.chmod(0o755)  # apt fetches as a user of its own
    fetched = subprocess.run(
        ["apt-get", "download", "-qq", package], cwd=folder, check=False, capture_output=True
    )
    files = list(folder.glob(f"{package}_*.deb"))
    if fetched.returncode != 0 or not files:
        return None
    subprocess.run(["dpkg", "-x", files[0].name, "package"], cwd=folder, check=True)
    return str(program)
