"""A run on local processes from a notebook's kernel: an event loop runs, `__main__` has no file.

The conditions are those of ipykernel, which is not installed here: a cell is compiled from a string
and executed in the namespace of `__main__`, below a running event loop, in the main thread or in
that of the loop, while other threads wait for messages.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_process import PROJECT

CELL = """
print("cell runs", flush=True)
report = api.run(
    sys.argv[1],
    api.Rules(
        include=".*",
        settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
        as_of=5000,
        any_clock=True,
        assume_fully_replicated=True,
    ),
    api.RunOptions(engine="local"),
)
"""
KERNEL = f"""
import asyncio, json, os, sys, threading
from cleaner_jobs.patience import processes_below
from compactor import api
print("main runs", flush=True)
over = threading.Event()
for _ in range(4):
    threading.Thread(target=over.wait, daemon=True).start()
async def execute():
    exec(compile({CELL!r}, "<cell 1>", "exec"), vars(sys.modules["__main__"]))
def serve():
    asyncio.run(execute())
START
assert not os.path.exists(getattr(sys.modules["__main__"], "__file__", ""))
left = [pid for pid in processes_below([os.getpid()]) if pid != os.getpid()]
print(json.dumps([report.engine.name, [log.status for log in report.logs], left]), flush=True)
"""
IN_MAIN_THREAD = "serve()"
IN_ANOTHER_THREAD = "thread = threading.Thread(target=serve); thread.start(); thread.join()"


@pytest.mark.parametrize("start", [IN_MAIN_THREAD, IN_ANOTHER_THREAD])
@pytest.mark.parametrize("is_typed", [False, True])
def test_a_cell_runs_once_and_leaves_no_process(log_dir: Path, start: str, is_typed: bool) -> None:
    program = KERNEL.replace("START", start)
    words = ["-", str(log_dir)] if is_typed else ["-c", program, str(log_dir)]
    kernel = subprocess.run(
        [sys.executable, *words],
        input=program if is_typed else "",
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert kernel.returncode == 0, kernel.stderr
    *said, last = kernel.stdout.splitlines()
    assert said == ["main runs", "cell runs"], "neither is imported again by a worker"
    assert json.loads(last) == ["local", ["cleaned"], []]
