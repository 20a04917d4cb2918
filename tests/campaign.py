"""Harness of every campaign: seeds, a sample, processes, resuming, the report and the exit code.

A campaign is a named value. Its `cases` name what can be tried, each with the function that tries
it; the harness decides which of them are tried and by how many processes, prints each problem with
the command that tries this case alone, counts what came of them, and ends with 1 if one was wrong.
"""

import ctypes
import faulthandler
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from compactor.host.output import print_line
from tests.oracle import jars

SEEDS = 2**31
IN_MEMORY = "/dev/shm"
PRINTED = 50  # problems of a case
Options = Mapping[str, Mapping[str, Any]]
_DIE_WITH_PARENT = 1  # of prctl


class Tried(NamedTuple):
    """What came of a case.

    Args:
        problems: What is wrong.
        counts: What the report adds up, by the words that it prints.
        line: What is printed as soon as the case has been tried.
        cases: How many cases it stands for, where many are tried at once.
    """

    problems: Sequence[str] = ()
    counts: Mapping[str, int] = Counter()
    line: str = ""
    cases: int = 1


class Case(NamedTuple):
    """Something to try.

    Args:
        name: Unlike that of every other case of its group.
        attempt: Tries it.
        group: What it is reported under.
    """

    name: str
    attempt: Callable[[], Tried]
    group: str = ""


@dataclass(frozen=True)
class Campaign:
    """What is tried, and how it is asked for.

    Args:
        module: What `python -m` is called with.
        about: The text of `--help`.
        cases: Yields the cases, of the options and a scratch directory. It must yield the same ones
            in each process. What it holds open stays open while its cases are tried.
        groups: Names for `--only`; `cases` looks at the option `only`, which has all by default.
        count: How many seeds there are by default; None where cases have no seeds.
        options: Options of its own, as for `add_argument`. Those that are given stand in the
            command that tries a case again.
        in_memory: Whether the scratch directory is in memory, where the system has a place for it.
        jobs: The default number of processes. With more than one, a `__main__` calls it CAMPAIGN.
        verdict: Returns what is wrong with all of the outcomes together, and may print a table.
    """

    module: str
    about: str
    cases: Callable[[Namespace, Path], Iterable[Case]]
    groups: Sequence[str] = ()
    count: int | None = None
    options: Options = field(default_factory=dict)
    in_memory: bool = False
    jobs: int = 1
    verdict: Callable[[Namespace, "Report"], Sequence[str]] | None = None

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Try the cases that the command line names, and return its exit code."""
        wanted = self.parsed(sys.argv[1:] if arguments is None else arguments)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `cases` cleans up
        try:
            report = self.run(wanted)
        except jars.OracleUnavailableError as unavailable:
            print_line(str(unavailable))
            return 1
        problems = self.verdict(wanted, report) if self.verdict else ()
        for problem in problems:
            print_line(f"WRONG: {problem}")
        for line in report.lines():
            print_line(line)
        return int(bool(report.wrong or problems))

    def parsed(self, arguments: Sequence[str]) -> Namespace:
        """Read the options; `seeds` and `only` are filled in."""
        parser = ArgumentParser(prog=f"python -m {self.module}", description=self.about)
        if self.groups:
            parser.add_argument("--only", choices=self.groups, action="append", metavar="GROUP")
        if self.count is not None:
            parser.add_argument("--count", type=int, default=self.count, help="of seeds")
            parser.add_argument("--first-seed", type=int, help="else it is drawn, and printed")
            parser.add_argument("--seed", type=int, action="append", help="this one alone")
        parser.add_argument("--case", help="the one of this name alone")
        parser.add_argument("--one-of", type=int, default=1, help="each Nth of a group alone")
        parser.add_argument("--jobs", type=int, default=self.jobs, help="processes")
        parser.add_argument("--resume", type=Path, help="file of outcomes: what it has is done")
        for name, settings in self.options.items():
            parser.add_argument(name, **settings)
        wanted = parser.parse_args(arguments)
        if self.groups:
            wanted.only = wanted.only or list(self.groups)
        if self.count is not None:
            drawn = wanted.first_seed is None and not wanted.seed
            first = random.randrange(SEEDS) if drawn else wanted.first_seed or 0
            wanted.seeds = wanted.seed or list(range(first, first + wanted.count))
            if drawn:
                wanted.first_seed = first
                print_line(f"--first-seed {first}")
        return wanted

    def run(self, wanted: Namespace) -> "Report":
        """Try the cases, in this process or in several."""
        report = Report()
        place = IN_MEMORY if self.in_memory and os.access(IN_MEMORY, os.W_OK) else None
        prefix = f"{self.module.rpartition('.')[2]}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as scratch:
            if wanted.jobs == 1:
                report.add(self.share(wanted, Path(scratch), 0))
                return report
            named = self  # as other processes find it, which have no such `__main__`
            if self.cases.__module__ == "__main__":
                named = import_module(f"{self.module}.__main__").CAMPAIGN
            pool = ProcessPoolExecutor(wanted.jobs, get_context("spawn"), _begin_worker)
            try:
                shares = [
                    pool.submit(named.share, wanted, Path(scratch, str(part)), part)
                    for part in range(wanted.jobs)
                ]
                for share in shares:
                    report.add(share.result())
            finally:
                pool.shutdown(cancel_futures=True)
        return report

    def share(self, wanted: Namespace, scratch: Path, part: int) -> "Report":
        """Try those cases of a sample that are the share of one of the processes."""
        scratch.mkdir(exist_ok=True)
        report, done = Report(), read_outcomes(wanted.resume)
        for number, case in enumerate(self._sample(wanted, scratch)):
            if number % wanted.jobs != part:
                continue
            key = f"{case.group}, {case.name}"
            tried = done.get(key)
            if tried is None:
                tried = case.attempt()
                if wanted.resume:
                    with wanted.resume.open("ab", buffering=0) as out:  # a whole line at once
                        out.write(f"{json.dumps([key, *tried])}\n".encode())
                self._print(wanted, case, tried)
            report.take(case, tried)
        return report

    def _sample(self, wanted: Namespace, scratch: Path) -> Iterator[Case]:
        numbers = Counter[str]()
        for case in self.cases(wanted, scratch):
            if wanted.case in (None, case.name):
                if numbers[case.group] % wanted.one_of == 0:
                    yield case
                numbers[case.group] += 1

    def _print(self, wanted: Namespace, case: Case, tried: Tried) -> None:
        if tried.line:
            print_line(tried.line)
        for problem in tried.problems[:PRINTED]:
            print_line(f"WRONG: {', '.join(filter(None, (case.group, case.name)))}: {problem}")
        if tried.problems:
            print_line(f"  again: {self.command(wanted, case)}")

    def command(self, wanted: Namespace, case: Case) -> str:
        """Return the command that tries a case alone."""
        words = ["python", "-m", self.module]
        for name, settings in self.options.items():
            value = getattr(wanted, name.lstrip("-").replace("-", "_"))
            if not name.startswith("-"):
                words += [str(value)]
            elif value != settings.get("default", False if "action" in settings else None):
                values = value if isinstance(value, list) else [value]
                words += [name] if value is True else [w for v in values for w in (name, str(v))]
        words += ["--only", case.group] if case.group in self.groups else []
        if self.count is not None:
            words += ["--first-seed", str(wanted.first_seed or 0)]
            words += ["--count", str(wanted.count)]
        words += ["--case", case.name]
        if self.count is not None and case.name.startswith("seed "):
            words[-6:] = ["--seed", case.name.removeprefix("seed ")]
        return shlex.join(words)


@dataclass
class Report:
    """What came of the cases that were tried."""

    tried: Counter[str] = field(default_factory=Counter)  # by group
    wrong: Counter[str] = field(default_factory=Counter)  # likewise
    counts: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def take(self, case: Case, tried: Tried) -> None:
        self.tried[case.group] += tried.cases
        self.wrong[case.group] += min(len(tried.problems), tried.cases)
        self.counts.update(tried.counts)

    def add(self, other: "Report") -> None:
        self.tried.update(other.tried)
        self.wrong.update(other.wrong)
        self.wrong = +self.wrong
        self.counts.update(other.counts)

    def lines(self) -> Iterator[str]:
        yield from (f"{count:10,} {what}" for what, count in sorted(self.counts.items()))
        if len(self.tried) > 1:
            for group, count in self.tried.items():
                yield f"{group}: {count:,} tried, {self.wrong[group]:,} wrong"
        took = time.monotonic() - self.began
        yield f"{self.tried.total():,} tried, {self.wrong.total():,} wrong, in {took:.0f} s"


def read_outcomes(path: Path | None) -> dict[str, Tried]:
    """Return what a file of outcomes holds, by group and name of the case."""
    if path is None or not path.exists():
        return {}
    lines = map(json.loads, path.read_text().splitlines())
    return {key: Tried(*values) for key, *values in lines}


def of_seeds(wanted: Namespace, attempt: Callable[[int], Tried], group: str = "") -> Iterator[Case]:
    """Yield a case for each seed."""
    for seed in wanted.seeds:
        yield Case(f"seed {seed}", lambda seed=seed: attempt(seed), group)  # type: ignore[misc]


def _begin_worker() -> None:
    """Let Ctrl-C and the end of the campaign's process end this one, whatever it is doing."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
