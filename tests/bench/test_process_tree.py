"""What /proc says, and what a tree of real processes used."""

import os
import subprocess
import sys

import pytest

from tests.bench.process_tree import (
    DAEMON_MODULES,
    MemoryWatch,
    cpu_seconds,
    processes,
)
from tests.bench.results import ALL, DRIVER, WORKERS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

# a child that works and is waited for, then a wait for us; the kernel counts ticks of 10 ms, and a
# child of 0.2 s by its own clock may come to less
FAMILY = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "while __import__('time').process_time() < 0.3: pass"])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family() -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_child_that_has_ended_is_counted(family: "subprocess.Popen[bytes]") -> None:
    with family:
        used = cpu_seconds(family.pid)
    assert used[ALL] == pytest.approx(sum(used.values()) - used[ALL])
    assert 0.2 <= used[ALL] < 2
    assert cpu_seconds(family.pid) == dict.fromkeys(used, 0.0)  # it is gone


@pytest.mark.parametrize("module", DAEMON_MODULES)
def test_workers_are_known_by_their_daemon(module: str) -> None:
    """One that loads beside Java is a child of the driver, and no part of it."""
    waits = "import sys; print(flush=True); sys.stdin.read()"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {waits!r}])"
    daemon = subprocess.Popen(
        [sys.executable, "-c", starts, module], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        found = [p for p in processes(os.getpid()) if p.kind == WORKERS]
    assert [(p.process.pid == daemon.pid, p.is_daemon) for p in found] == [
        (True, True),
        (False, False),
    ]


def test_memory_is_seen(family: "subprocess.Popen[bytes]") -> None:
    with family, MemoryWatch(family.pid) as watch:
        pass
    peaks = watch.peaks()
    assert set(peaks) == {DRIVER, ALL}
    assert peaks[DRIVER].rss_bytes >= peaks[DRIVER].pss_bytes >= peaks[DRIVER].uss_bytes > 100_000
