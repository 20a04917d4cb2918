"""Rounds in which lies are told, on either engine, and who noticed which of them."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from cleaner_jobs.local.in_process_engine import InProcessEngine
from cleaner_jobs.local.local_engine import LocalEngine
from compactor.jobs.engines import Engine
from compactor.log_checks.findings import Finding
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.verification.evidence import CleaningClock
from compactor.verification.verify import verify
from compactor.verification.verify_against import verify_against
from storage.formats import checkpoint
from tests.compactor.plan_logs import plan_log_dirs
from tests.golden import copies, corpora
from tests.lies.liar import ORDERS, Liar, Orders, lie_in_workers
from tests.lies.lie import Case
from tests.support.local_round import LocalRound, NoProgress
from tests.support.prepared_host import prepared_workers

IN_PROCESS, LOCAL = "in process", "local engine"
PARTITION = re.compile(r"case\d+-0")
# in reasons: the work directory, the run, and which try of a task it was
OF_A_RUN = re.compile(
    r"\S*/compactor-[0-9a-f]{8}-\w+/|(?<=compactor-)[0-9a-f]{8}-|(?<=[a-z])-\d+-\d+(?=[.,: ]|$)"
)


class Finder(StrEnum):
    RUN = "run"  # the round itself: the log is not told as cleaned
    VERIFY = "verify"
    AGAINST = "verify --against"
    REPORT = "verify --against --run-report"


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a lie."""

    case: Case
    is_told: bool  # there was something to lie about
    has_effect: bool  # something stands there that would not, or something does not
    finders: frozenset[Finder]
    told: str  # what the first of them said
    left: str = ""  # a digest of how the log ended: its status, reason, files, checkpoint
    is_end: bool = False  # of the whole round, by an error that nobody foresaw

    @property
    def counts(self) -> bool:
        """Whether it was a lie: told, and something came of it."""
        return self.is_told and (self.has_effect or bool(self.finders))


Found = Mapping[Finder, Sequence[str]]


class Outcome(NamedTuple):
    """What a round left of a log, and what was said of it."""

    status: LogStatus
    reason: str  # without names that another run has not
    files: Mapping[str, str]  # digests, by name
    cleaned_to: int | None
    findings: Mapping[Finder, tuple[str, ...]]


@dataclass(slots=True, kw_only=True)
class Judge:
    """Lets lies be told in rounds on one engine; knows what comes of each log without one."""

    local: LocalRound
    root: Path  # a directory for its rounds
    engine: Engine
    orders: Path  # for workers to read
    findings: dict[str, Mapping[str, Found]]  # by what was looked at; shared with other judges
    honest: dict[str, Outcome]  # by source; shared: without a lie all engines leave the same
    _rounds: int = 0

    def judge(self, cases: Sequence[Case]) -> list[Judged]:
        """Tell all of these lies in one round."""
        new = sorted({case.source for case in cases} - self.honest.keys())
        sources = {f"case{number}-0": source for number, source in enumerate(new)}
        if sources:
            _, outcomes = self._round(sources, {})
            self.honest |= {source: outcomes[name] for name, source in sources.items()}
        named = {f"case{number}-0": case for number, case in enumerate(cases)}
        try:
            told, outcomes = self._round({n: c.source for n, c in named.items()}, named)
        except Exception as error:
            if len(cases) == 1:
                return [Judged(cases[0], True, True, frozenset(), repr(error), is_end=True)]
            middle = len(cases) // 2  # which of them was it?
            return [*self.judge(cases[:middle]), *self.judge(cases[middle:])]
        return [self._judged(case, name in told, outcomes[name]) for name, case in named.items()]

    def _judged(self, case: Case, is_told: bool, found: Outcome) -> Judged:
        honest = self.honest[case.source]
        has_effect = (found.files, found.cleaned_to) != (honest.files, honest.cleaned_to)
        finders, told = set(), []
        if found.status is not honest.status:
            finders.add(Finder.RUN)
            told.append(found.reason)
        for finder, findings in found.findings.items():
            new = [text for text in findings if text not in honest.findings[finder]]
            if new and found.status is LogStatus.CLEANED:
                finders.add(finder)
                told += new
        left: tuple[object, ...] = (found.status, found.reason)
        if found.status is LogStatus.CLEANED:  # else groups may be swapped in by then, or not yet
            left += (found.files, found.cleaned_to)
        return Judged(
            case=case,
            is_told=is_told,
            has_effect=has_effect,
            finders=frozenset(finders),
            told=told[0] if told else "",
            left=sha256(repr(left).encode()).hexdigest(),
        )

    def _round(
        self, sources: Mapping[str, str], cases: Mapping[str, Case]
    ) -> tuple[set[str], Mapping[str, Outcome]]:
        """Copies of golden logs through one round: which lies were told, what came of each log."""
        self._rounds += 1
        root = self.root / f"round-{self._rounds}"
        (root / "told").mkdir(parents=True)
        logs = {name: copies.golden_log(source) for name, source in sources.items()}
        copies.write_copies(root / "after", logs)
        config = copies.config_of(logs, root / "topics.json")
        plan = plan_log_dirs([str(root / "after")], config, corpora.now_ms())
        names = {log.log_id: log.name for log in plan.logs}
        orders = Orders(cases, names, corpora.extracted().before, root / "told")
        orders.save(self.orders)
        liar = Liar(lambda: orders)
        self.local.tasks = self.engine
        with pytest.MonkeyPatch.context() as patch, liar.about_rows(self.local):
            if isinstance(self.engine, InProcessEngine):
                liar.in_tasks(patch)
            reports = {f"{log.topic}-{log.partition}": log for log in self.local.run(plan).logs}
        files = _digests(root / "after")
        # what is found follows from the bytes of both sides: the same for the next judge
        key = sha256(repr((sorted(sources.items()), sorted(files.items()))).encode()).hexdigest()
        if key not in self.findings:
            copies.write_copies(root / "before", logs)
            self.findings[key] = _findings(root, plan)
        entries = checkpoint.read(str(root / "after" / checkpoint.CLEANER_OFFSET))
        outcomes = {
            name: _outcome(root, name, reports[name], files, self.findings[key], entries)
            for name in sources
        }
        told = {path.name for path in (root / "told").iterdir()}
        shutil.rmtree(root)
        return told, outcomes


@contextmanager
def judges(local: LocalRound, root: Path) -> Iterator[Mapping[str, Judge]]:
    """Yield one for each engine, by its name.

    The local engine has a single worker process, so that a lie that can be told about several tasks
    is told about the same one on both. Lies about rows are told where the driver takes them. What a
    log is without a lie, the first to judge finds out; where a lie lets a log be cleaned, its files
    are compared, and so an engine that leaves others is noticed.
    """
    root.mkdir(parents=True)
    findings: dict[str, Mapping[str, Found]] = {}
    honest: dict[str, Outcome] = {}
    orders = root / "orders.json"
    with prepared_workers(lie_in_workers, {ORDERS: str(orders)}) as workers:
        engines: dict[str, Engine] = {IN_PROCESS: InProcessEngine(), LOCAL: LocalEngine(workers)}
        yield {
            name: Judge(
                local=local,
                root=root / name.replace(" ", "-"),
                engine=engine,
                orders=orders,
                findings=findings,
                honest=honest,
            )
            for name, engine in engines.items()
        }


def _digests(log_dir: Path) -> dict[str, str]:
    """Return what files a log directory has, with a digest of each."""
    found = (path for path in log_dir.rglob("*") if path.is_file())
    return {str(path.relative_to(log_dir)): sha256(path.read_bytes()).hexdigest() for path in found}


def _outcome(
    root: Path,
    name: str,
    report: LogReport,
    files: Mapping[str, str],
    findings: Mapping[str, Found],
    entries: Mapping[tuple[str, int], int],
) -> Outcome:
    prefix = f"{name}/"
    of_log = {path.removeprefix(prefix): d for path, d in files.items() if path.startswith(prefix)}
    found = findings.get(name, {})
    return Outcome(
        status=report.status,
        reason=OF_A_RUN.sub("", (report.reason or "").replace(f"{root}/", "")),
        files=dict(sorted(of_log.items())),
        cleaned_to=entries.get((report.topic, report.partition)),
        findings={
            finder: tuple(found.get(finder, ())) for finder in Finder if finder != Finder.RUN
        },
    )


def _findings(root: Path, plan: RoundPlan) -> Mapping[str, Found]:
    """By partition; without its name, so that they can be held against those of another."""
    before, after = str(root / "before"), str(root / "after")
    retention = {(log.topic, log.partition): log.delete_retention_ms for log in plan.logs}
    clocks = {
        Finder.AGAINST: CleaningClock(plan.as_of_ms),
        Finder.REPORT: CleaningClock(plan.as_of_ms, True, retention),
    }
    by_finder: dict[Finder, Iterable[Finding]] = {
        Finder.VERIFY: verify([after], (), NoProgress()).findings
    }
    for finder, clock in clocks.items():
        by_finder[finder] = verify_against(after, before, None, clock, NoProgress()).findings
    found: dict[str, dict[Finder, list[str]]] = defaultdict(lambda: defaultdict(list))
    for finder, findings in by_finder.items():
        for finding in findings:
            text = str(finding).removeprefix(f"{root}/")
            for name in {*PARTITION.findall(text)}:
                found[name][finder].append(text.replace(name, "it"))
    return found
