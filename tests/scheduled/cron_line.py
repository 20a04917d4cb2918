"""The command of conf/cron, with the paths of a test in the place of its own."""

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

CRON = Path(__file__).parents[2] / "conf" / "cron" / "log-compactor"


class Paths(NamedTuple):
    """Of one log directory that is compacted on a schedule."""

    log_dir: Path
    reports: Path
    metrics: Path
    work_dir: Path


def run_line(paths: Paths, *more: object) -> str:
    """What cron's shell is given at night. more: words behind the log directory."""
    return _line(" run ", paths, *more, "--work-dir", paths.work_dir)


def plan_line(paths: Paths, *more: object) -> str:
    """What cron's shell is given every hour."""
    return _line(" plan ", paths, *more)


def environment() -> dict[str, str]:
    """That of the file, and where the command stands here."""
    lines = CRON.read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if line[:1].isupper() and "=" in line)
    command = Path(sys.executable).parent / "compactor"
    names = ("HOME", "JAVA_HOME", "XDG_CACHE_HOME")
    own = {name: os.environ[name] for name in names if name in os.environ}
    settings.pop("XDG_CACHE_HOME")  # of a host where somebody has made that directory
    return {**settings, "COMPACTOR": str(command), **own}


def _line(command: str, paths: Paths, *more: object) -> str:
    lines = CRON.read_text(encoding="utf-8").splitlines()
    [entry] = [line for line in lines if command in line and not line.startswith("#")]
    line = entry.split(" ", 6)[6]
    words = shlex.join(map(str, (paths.log_dir, *more)))
    line = line.replace("/backup/kafka", words)
    line = line.replace("/var/log/log-compactor", str(paths.reports))
    return line.replace("/var/lib/prometheus/node-exporter", str(paths.metrics))
