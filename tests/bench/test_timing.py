"""CPU seconds of everything that a command started, also of what outlives it.

In a process of its own: one that adopts orphans and waits for them must have no other children.
"""

import json
import subprocess
import sys

import pytest

from tests.bench.timing import SOURCES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prctl")

RUN = """
import json, sys
from tests.bench import timing
timing.adopt_orphans()
done = timing.run(json.loads(sys.argv[1]))
print(json.dumps([done.exit_code, done.sample.cpu_seconds, done.stdout, done.peak_rss_bytes]))
"""
WORK = "while __import__('time').process_time() < 0.3: pass"


def measure(*argv: str) -> tuple[int, float, str, int]:
    run = [sys.executable, "-c", RUN, json.dumps(argv)]
    answer = subprocess.run(run, capture_output=True, check=True, cwd=SOURCES).stdout
    exit_code, cpu_seconds, stdout, peak = json.loads(answer)
    return exit_code, cpu_seconds, stdout, peak


@pytest.mark.parametrize("how", ["exec", "", "&"], ids=["itself", "a child", "an orphan"])
def test_each_process_that_works_is_counted(how: str) -> None:
    words = f'"$1" -c "$2" {how}' if how != "exec" else 'exec "$1" -c "$2"'
    exit_code, cpu_seconds, _, _ = measure("sh", "-c", f"{words}", "sh", sys.executable, WORK)
    assert exit_code == 0
    assert 0.3 <= cpu_seconds < 3


def test_exit_code_output_and_memory_are_reported() -> None:
    exit_code, _, stdout, peak = measure("sh", "-c", "echo said; exit 3")
    assert (exit_code, stdout) == (3, "said\n")
    assert 100_000 < peak < 1_000_000_000
