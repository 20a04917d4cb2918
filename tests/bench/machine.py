"""What the numbers were measured on: a number without its machine says nothing."""

import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from compactor.host.machine import version
from tests.oracle import kafka, versions

PACKAGES = ("pyspark", "numba", "numpy")
INSTRUCTIONS = ("sse4_2", "pclmulqdq", "avx512f", "vpclmulqdq")  # that kernels have ways for
BUSY_LOAD_A_CORE = 0.25


def facts(master: str, repetitions: int) -> dict[str, str]:
    """What to print above the tables."""
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        + f", turns: {repetitions}, Spark on {master}",
        "machine": f"{_processor()}, {_cores()} cores, {_memory_gib():.0f} GiB",
        "instructions": instructions(_cpuinfo()) or f"none of {' '.join(INSTRUCTIONS)}",
        "software": f"compactor {version()} ({_commit()}), Python {platform.python_version()}, "
        f"{packages}, {_java()}, Kafka {versions.chosen().release}",
        "load before": f"{os.getloadavg()[0]:.2f}" + (" (busy: do not trust)" if is_busy() else ""),
    }


def instructions(cpuinfo: str) -> str:
    """Return those of INSTRUCTIONS that the processor has, by the text of /proc/cpuinfo."""
    flags = re.search(r"^flags\s*:\s*(.+)$", cpuinfo, re.M)
    has = flags[1].split() if flags else []
    return " ".join(name for name in INSTRUCTIONS if name in has)


def is_busy() -> bool:
    """Whether others are using the machine."""
    return os.getloadavg()[0] > BUSY_LOAD_A_CORE * _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _processor() -> str:
    named = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.M)
    return named[1].strip() if named else platform.machine()


def _cpuinfo() -> str:
    return Path("/proc/cpuinfo").read_text("utf-8", "replace")


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _java() -> str:
    java, *_ = kafka.command("help")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'version "([^"]+)"', said)
    return f"Java {number[1]}" if number else "Java"


def _commit() -> str:
    """The commit, with a + where the files are not the committed ones."""
    git = shutil.which("git")
    if git is None:
        return "no git"
    words = [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"
