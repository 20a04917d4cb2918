"""run --io-limit and --nice: what is asked for is what the kernel counts; processes are nice."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor import LogManager, append_table
from storage.files import io_limit
from tests.support.command_process import PROJECT
from tests.support.local_command import run_command, use_local_rounds

MB = 1_000_000
RUN = (
    *("--include", "orders", "--set", "cleanup.policy=compact"),
    *("--set", "min.cleanable.dirty.ratio=0", "--assume-fully-replicated"),
)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """With a log of 10 MB that keeps two thirds of its bytes."""
    some = random.Random(1)
    directory = tmp_path / "data"
    directory.mkdir()
    with LogManager([str(directory)]) as manager:
        log = manager.create(("orders", 0))
        for _ in range(2):
            keys = [b"%d" % some.randrange(30_000) for _ in range(20_000)]
            values = [some.randbytes(230) for _ in keys]
            append_table(log, pa.table({"key": keys, "value": values}))
            log.roll()
    return directory


def _counted_by_the_kernel() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    counts = dict(line.split(": ") for line in lines)
    return int(counts["rchar"]) + int(counts["wchar"])


@pytest.mark.parametrize("more", [(), ("--keep-originals", "KEPT"), ("--output", "COPY")])
def test_what_is_asked_for_is_what_the_kernel_counts(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    assert run_command("run", log_dir, *RUN, "--dry-run").code == 0  # what is loaded by the way
    asked: list[int] = []
    monkeypatch.setattr(io_limit._Limit, "take", lambda _, size_bytes: asked.append(size_bytes))
    words = [str(tmp_path / word) if word.isupper() else word for word in more]
    before = _counted_by_the_kernel()
    with io_limit.limited(MB):  # local rounds are begun by the test
        ended = run_command("run", log_dir, *RUN, "--io-limit", "1MB/s", *words)
    counted = _counted_by_the_kernel() - before
    assert ended.code == 0
    assert counted > 20 * MB
    assert sum(asked) == pytest.approx(counted, rel=0.1)


def _shown_by(words: list[str], look: Callable[[int], Any]) -> set[Any]:
    process = subprocess.Popen(words, cwd=PROJECT, stdout=-3, stderr=-3)
    seen = set()
    while process.poll() is None:
        for name in os.listdir("/proc"):
            if name.isdigit() and _parent_chain_has(int(name), process.pid):
                try:
                    seen.add(look(int(name)))
                except OSError:
                    continue
    assert process.returncode == 0
    return seen


def _parent_chain_has(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(stat[stat.rindex(")") :].split()[2])
    return pid == ancestor


@pytest.mark.parametrize(
    ("engine", "kind", "may_start_otherwise"),
    [
        (("--engine", "local"), "worker_host", True),  # they are started while the command loads
        pytest.param(("--master", "local[1]"), "java", False, marks=pytest.mark.spark),
    ],
)
def test_a_nice_run_is_nice_with_all_of_its_processes(
    log_dir: Path, engine: tuple[str, ...], kind: str, may_start_otherwise: bool
) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    nice = min(max(own, 0) + 3, 19)
    words = [sys.executable, "-m", "compactor", "run", str(log_dir), *RUN, *engine]

    def look(pid: int) -> tuple[str, int]:
        is_worker = b"worker_host" in Path(f"/proc/{pid}/cmdline").read_bytes()
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        return "worker_host" if is_worker else name, os.getpriority(os.PRIO_PROCESS, pid)

    seen = _shown_by([*words, "--nice", str(nice), "--io-limit", "10MB/s"], look)
    of_kind = {niceness for name, niceness in seen if name == kind}
    assert nice in of_kind
    assert of_kind <= ({own, nice} if may_start_otherwise else {nice})
    assert max(niceness for _, niceness in seen) == nice
