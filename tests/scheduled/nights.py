"""One host for some weeks: a broker by day, a run by night, a plan each hour, by a clock of ours.

The broker is the storage engine; a run is the command of conf/cron with its tasks in this process.
Before each hour the machine's clock is set, and what was written since is given that time.
"""

import contextlib
import io
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor import LogConfig, LogManager
from compactor.command_line import cli
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.manager_options import ManagerOptions
from storage.log.scheduler import ManualScheduler
from tests.scheduled.cron_line import Paths, plan_line, run_line
from tests.support.local_command import use_local_rounds

PROJECT = Path(__file__).parents[2]
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
BEGIN_MS = 2_000_000_000_000 // DAY_MS * DAY_MS  # a midnight
SEGMENT_BYTES = 20_000
TOPICS = {"orders": 2, "prices": 1}
BATCHES_A_DAY, RECORDS = 120, 10
SETTINGS = (
    *("--include", "orders|prices", "--assume-fully-replicated"),
    *("--set", "cleanup.policy=compact", "--set", f"segment.bytes={SEGMENT_BYTES}"),
    *("--set", "delete.retention.ms=3600000"),  # tombstones go in the night after
    *("--set", "min.cleanable.dirty.ratio=0.05"),
)


class Host:
    """Hours are counted from the first midnight."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, hour: int = 0) -> None:
        """hour: the present one of a host that has lived so long."""
        self.paths = Paths(root / "data", root / "reports", root / "metrics", root / "work")
        for path in self.paths:
            path.mkdir(exist_ok=True)
        self.kept = root / "kept"
        self.kept.mkdir(exist_ok=True)
        self.hour = hour
        self._some = random.Random(7)
        self.said = ""  # by the last command
        use_local_rounds(patch, root / "rounds")
        real = time.time_ns
        self._offset_ns = 0
        patch.setattr(time, "time_ns", lambda: real() + self._offset_ns)
        self._real_ns = real
        self.set_clock(hour)

    def set_clock(self, hour: int) -> None:
        """It is hour now, and what was written since the last call was written then."""
        written_ns = self.now_ms * 1_000_000
        for path in self.paths.log_dir.rglob("*"):
            if path.is_file() and path.stat().st_mtime_ns < BEGIN_MS * 1_000_000 - DAY_MS * 10**9:
                os.utime(path, ns=(written_ns, written_ns))
        self.hour = hour
        self._offset_ns = (BEGIN_MS + hour * HOUR_MS) * 1_000_000 - self._real_ns()

    @property
    def now_ms(self) -> int:
        return BEGIN_MS + self.hour * HOUR_MS

    @contextlib.contextmanager
    def broker(self) -> Iterator[LogManager]:
        """It starts, and is shut down cleanly."""
        clock = lambda: self.now_ms  # noqa: E731
        options = ManagerOptions(
            clock=clock,
            scheduler=ManualScheduler(clock),
            config=LogConfig(segment_bytes=SEGMENT_BYTES),
        )
        with LogManager([str(self.paths.log_dir)], options) as manager:
            for topic, partitions in TOPICS.items():
                for partition in range(partitions):
                    if (topic, partition) not in manager.logs:
                        manager.create((topic, partition))
            yield manager

    def append_a_day(self) -> None:
        """More keys each day, and new values for old ones."""
        with self.broker() as manager:
            for _, log in sorted(manager.logs.items()):  # they are loaded in any order
                for _ in range(BATCHES_A_DAY):
                    log.append_as_leader(encode_batch([self.record(n) for n in range(RECORDS)]))

    def record(self, number: int) -> Record:
        key = b"key-%d" % self._some.randrange(500 + 10 * self.hour)
        value = None if self._some.random() < 0.05 else self._some.randbytes(60)
        return Record(number, self.now_ms, key, value)

    def plan(self) -> int:
        """The hourly plan; its exit code."""
        return self._command(plan_line(self.paths, *SETTINGS))

    def run(self) -> int:
        """The nightly run; its exit code."""
        return self._command(self._run_line())

    def killed_run(self, renames: int = 0) -> None:
        """A run in a process of its own, killed in its swaps, after so many renames."""
        words = (self.paths.log_dir.parent, self.hour, renames)
        killed = subprocess.run(
            [sys.executable, "-m", "tests.scheduled.killed_night", *map(str, words)],
            cwd=PROJECT,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.returncode

    def _run_line(self) -> str:
        kept = ("--keep-originals", self.kept, "--keep-for", "47h")
        return run_line(self.paths, *SETTINGS, *kept)

    def _command(self, line: str) -> int:
        words = shlex.split(line)
        words = [word for word in words[words.index("$COMPACTOR") + 1 :] if word != ">/dev/null"]
        return self.command(*words)

    def command(self, *words: object) -> int:
        """Its exit code; `said` has what it said."""
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as error,
        ):
            code = cli.main([str(word) for word in words])
        self.said = out.getvalue() + error.getvalue()
        return code


def leftovers(host: Host) -> list[str]:
    """Names that nothing but a run that is at work, or was cut short, has a use for."""
    suffixes = (".deleted", ".cleaned", ".swap", ".tmp")
    data = [
        p for p in host.paths.log_dir.rglob("*") if p.suffix in suffixes or "compactor-" in p.name
    ]
    return sorted(map(str, (*data, *host.paths.work_dir.iterdir())))
