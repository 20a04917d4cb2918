"""The wheel of this project, and a wheel as installed."""

import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def build_wheel(output: Path) -> Path:
    """Build it with what the lock file has, offline."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output.resolve())],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"no wheel: {done.stdout}{done.stderr}")
    *_, name = done.stdout.split() + done.stderr.split()
    return output / Path(name).name


def unpack_wheel(wheel: Path, packages: Path) -> None:
    """A wheel without scripts of its own is its installation."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
