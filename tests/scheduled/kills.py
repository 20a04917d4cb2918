"""Runs that their scheduler kills at random moments, and the next scheduled ones, as cron does it.

After SIGTERM, SIGINT or SIGHUP a run ends in order, with a report, within a stated time. After any
of them, and after SIGKILL, the next run needs no person, ends as one that was never disturbed, and
leaves the same bytes. After half of the SIGKILLs it finds the machine as after a reboot: what stood
in a tmpfs, the work directory and temporary files, is gone, perhaps the lock's file as well.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from compactor.log_dirs.locked_log_dirs import LOCK_FILE
from storage.file_names import SNAPSHOT
from tests.kill import logs, processes
from tests.scheduled.cron_line import Paths, environment, run_line

STATED_SECONDS = 60.0  # docs/scheduling.md
RUN_SECONDS = 900.0
TEMPORARY = "tmp"  # where the runs have their temporary files
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


SPARK, LOCAL = ENGINES = ("spark", "local")
OF_CRON = "--engine spark"


class Moment(NamedTuple):
    """When a run is killed: so long after something of it can be seen from outside."""

    name: str
    seen: Callable[[Paths], bool]
    longest_seconds: float  # on Spark
    local_seconds: float  # on the local engine


def _stage(stage: str) -> Callable[[Paths], bool]:
    return lambda paths: any(paths.work_dir.glob(f"compactor-*/tasks/{stage}-0.json"))


def _is_swapping(paths: Paths) -> bool:
    names = (
        name for folder in paths.log_dir.iterdir() if folder.is_dir() for name in _names(folder)
    )
    return any(name.endswith((".swap", ".deleted")) for name in names)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


MOMENTS = (
    Moment("start", lambda _: True, 6.0, 1.5),
    Moment("scan", _stage("scan"), 2.0, 0.5),
    Moment("resolve", _stage("resolve"), 0.5, 0.2),
    Moment("rewrite", _stage("rewrite"), 1.0, 0.5),
    Moment("rewrite", _stage("rewrite"), 1.0, 0.5),
    Moment("swap", _is_swapping, 0.5, 0.5),
    Moment("swap", _is_swapping, 0.5, 0.5),
)


@dataclass(slots=True)
class Kill:
    """One, and what did not hold after it."""

    seed: int
    signal: signal.Signals
    moment: str
    engine: str
    rebooted: bool = False  # after it
    ending_seconds: float = 0.0  # from the signal until every process was gone
    changed_logs: int = 0  # by the run that was killed
    problems: list[str] = field(default_factory=list)


class Range(NamedTuple):
    """The logs as they were, and as an undisturbed run leaves them."""

    root: Path

    def prepare(self) -> None:
        logs.write(self.root / "before", self.root / "topics.json")
        shutil.copytree(self.root / "before", self.root / "undisturbed")
        paths = self._paths(self.root / "calm", self.root / "undisturbed")
        done = self._start(paths, SPARK).wait(RUN_SECONDS)
        assert done == 0, (paths.reports / "last.json").read_text()
        assert not _same(self.root / "before", self.root / "undisturbed")

    def kill_one(self, seed: int) -> Kill:
        """Kill one run; another one if it was over before. Every other seed is of one engine."""
        for attempt in range(20):
            chance = random.Random(f"{seed} {attempt}")
            with tempfile.TemporaryDirectory(prefix=f"kill-{seed}-", dir=self.root) as folder:
                killed = self._kill(Path(folder), chance, seed)
            if killed is not None:
                return killed
        raise AssertionError(f"seed {seed}: twenty runs ended before they could be killed")

    def _kill(self, folder: Path, chance: random.Random, seed: int) -> Kill | None:
        log_dir = folder / "logs"
        shutil.copytree(self.root / "before", log_dir)
        paths, moment = self._paths(folder, log_dir), chance.choice(MOMENTS)
        engine = ENGINES[seed % 2]
        killed = Kill(seed, chance.choice(SIGNALS), moment.name, engine)
        running = self._start(paths, engine)
        deadline = time.monotonic() + RUN_SECONDS
        while running.poll() is None and not moment.seen(paths):
            assert time.monotonic() < deadline, f"the run does not come to {moment.name}"
            time.sleep(0.002)
        longest = moment.longest_seconds if engine == SPARK else moment.local_seconds
        time.sleep(chance.uniform(0, longest))
        if running.poll() is not None or not _send(running.pid, killed.signal):
            running.wait()
            return None
        began = time.monotonic()
        running.wait(RUN_SECONDS)
        if not processes.wait_until_gone(running.pid, ()):
            killed.problems.append("processes of the killed run did not end")
        killed.ending_seconds = time.monotonic() - began
        killed.changed_logs = len(_folders(log_dir)) - len(_same(self.root / "before", log_dir))
        if killed.signal is not signal.SIGKILL:
            killed.problems += _disorder(killed, paths)
        elif chance.random() < 0.5:
            killed.rebooted = True
            _reboot(paths, with_lock=chance.random() < 0.5)
        killed.problems += self._next(paths, chance.choice(ENGINES))
        return killed

    def _next(self, paths: Paths, engine: str) -> list[str]:
        """What does not hold after the next run."""
        problems = []
        code = self._start(paths, engine).wait(RUN_SECONDS)
        report = _report(paths)
        if code or report.get("exit_code") != 0:
            problems.append(f"the next run ended with {code}: {report.get('error')}")
        problems += _left_over(paths)
        same = _same(self.root / "undisturbed", paths.log_dir)
        problems += [
            f"{name}: not as an undisturbed run leaves it"
            for name in _folders(self.root / "undisturbed")
            if name not in same and logs.is_stable(name)
        ]
        return problems

    def _paths(self, folder: Path, log_dir: Path) -> Paths:
        paths = Paths(log_dir, folder / "reports", folder / "metrics", folder / "work")
        for path in (*paths[1:], folder / TEMPORARY):
            path.mkdir(parents=True)
        return paths

    def _start(self, paths: Paths, engine: str) -> "subprocess.Popen[bytes]":
        words = ("--topic-configs", self.root / "topics.json", "--as-of", logs.NOW_MS)
        master = ("--master", "local[2]") if engine == SPARK else ()
        line = run_line(paths, *words, "--any-clock", *master)
        assert OF_CRON in line
        line = line.replace(OF_CRON, f"--engine {engine}")
        own = environment() | {"TMPDIR": str(_temporary(paths))}
        return subprocess.Popen(
            [own["SHELL"], "-c", line],
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _temporary(paths: Paths) -> Path:
    return paths.work_dir.with_name(TEMPORARY)


def _reboot(paths: Paths, with_lock: bool) -> None:
    """with_lock: its file goes as well."""
    shutil.rmtree(paths.work_dir)
    shutil.rmtree(_temporary(paths))
    _temporary(paths).mkdir()
    if with_lock:
        (paths.log_dir / LOCK_FILE).unlink(missing_ok=True)


def _left_over(paths: Paths) -> list[str]:
    """In the work directory and among temporary files.

    A run that has nothing to do, as the one before it was killed at its very end, does not make a
    work directory anew that a reboot has taken away.
    """
    places = [place for place in (paths.work_dir, _temporary(paths)) if place.is_dir()]
    return [f"left over: {path}" for place in places for path in place.iterdir()]


def _send(session: int, number: signal.Signals) -> bool:
    """To the whole process group of the command, which `timeout` has given it; whether it was
    there. SIGKILL to everything that the session has."""
    of_session = processes.of_session(session)
    of_command = [p.pid for p in of_session if b"/compactor\0run\0" in p.command]
    if not of_command:
        return False
    try:
        if number is signal.SIGKILL:
            for process in of_session:
                os.kill(process.pid, number)
        else:
            os.killpg(os.getpgid(of_command[0]), number)
    except ProcessLookupError:
        return False
    return True


def _disorder(killed: Kill, paths: Paths) -> list[str]:
    """What there is about the ending of a run that was asked to end, and may have been over."""
    problems, report = [], _report(paths)
    if killed.ending_seconds > STATED_SECONDS:
        problems.append(f"{killed.signal.name}: ended after {killed.ending_seconds:.0f} s")
    has_begun = bool(report or killed.changed_logs)  # else it had not even read its words
    if has_begun and report.get("exit_code") not in (0, 128 + killed.signal):
        problems.append(f"{killed.signal.name}: no report, or one with {report.get('exit_code')}")
    return problems + _left_over(paths)


def _report(paths: Paths) -> dict[str, Any]:
    """{} where there is none."""
    try:
        found: dict[str, Any] = json.loads((paths.reports / "last.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def _folders(log_dir: Path) -> list[str]:
    return sorted(path.name for path in log_dir.iterdir() if path.is_dir())


def _same(one: Path, other: Path) -> set[str]:
    """Partitions whose files have the same names and the same bytes; of the producers' snapshots
    there may be fewer."""
    return {name for name in _folders(one) if _contents(one / name) == _contents(other / name)}


def _contents(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir() if path.suffix != SNAPSHOT}
