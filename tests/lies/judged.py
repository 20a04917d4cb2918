"""Rounds in which lies are told, and who noticed which of them."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pytest

from compactor.log_checks.findings import Finding
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.verification.evidence import CleaningClock
from compactor.verification.verify import verify
from compactor.verification.verify_against import verify_against
from storage.formats import checkpoint
from tests.compactor.plan_logs import plan_log_dirs
from tests.golden import copies, corpora
from tests.lies.liar import Liar
from tests.lies.lie import Case
from tests.support.local_round import LocalRound, NoProgress, engine_of

PARTITION = re.compile(r"case\d+-0")


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
    is_end: bool = False  # of the whole round, by an error that nobody foresaw

    @property
    def counts(self) -> bool:
        """Whether it was a lie: told, and something came of it."""
        return self.is_told and (self.has_effect or bool(self.finders))


class Outcome(NamedTuple):
    """What a round left of a log, and what was said of it."""

    status: LogStatus
    reason: str
    files: Mapping[str, bytes]
    cleaned_to: int | None
    findings: Mapping[Finder, tuple[str, ...]]


@dataclass(slots=True)
class Judge:
    """Lets lies be told in rounds in a directory; knows what comes of each log without one."""

    local: LocalRound
    root: Path
    _rounds: int = 0
    _honest: dict[str, Outcome] = field(default_factory=dict)  # by source

    def judge(self, cases: Sequence[Case]) -> list[Judged]:
        """Tell all of these lies in one round."""
        new = sorted({case.source for case in cases} - self._honest.keys())
        sources = {f"case{number}-0": source for number, source in enumerate(new)}
        if sources:
            _, outcomes = self._round(sources, {})
            self._honest |= {source: outcomes[name] for name, source in sources.items()}
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
        honest = self._honest[case.source]
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
        return Judged(case, is_told, has_effect, frozenset(finders), told[0] if told else "")

    def _round(
        self, sources: Mapping[str, str], cases: Mapping[str, Case]
    ) -> tuple[set[str], Mapping[str, Outcome]]:
        """Copies of golden logs through one round: which lies were told, what came of each log."""
        self._rounds += 1
        root = self.root / f"round-{self._rounds}"
        root.mkdir(parents=True)
        logs = {name: copies.golden_log(source) for name, source in sources.items()}
        for side in ("before", "after"):
            copies.write_copies(root / side, logs)
        config = copies.config_of(logs, root / "topics.json")
        plan = plan_log_dirs([str(root / "after")], config, corpora.now_ms())
        liar = Liar(cases, plan)
        self.local.tasks = engine_of(self._rounds)
        with pytest.MonkeyPatch.context() as patch, liar.at_work(patch, self.local):
            reports = {f"{log.topic}-{log.partition}": log for log in self.local.run(plan).logs}
        findings = _findings(root, plan)
        entries = checkpoint.read(str(root / "after" / checkpoint.CLEANER_OFFSET))
        outcomes = {
            name: _outcome(root / "after" / name, reports[name], findings[name], entries)
            for name in sources
        }
        shutil.rmtree(root)
        return liar.told, outcomes


def _outcome(
    path: Path,
    report: LogReport,
    findings: Mapping[Finder, Sequence[str]],
    entries: Mapping[tuple[str, int], int],
) -> Outcome:
    return Outcome(
        report.status,
        report.reason or "",
        {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()},
        entries.get((report.topic, report.partition)),
        {finder: tuple(findings.get(finder, ())) for finder in Finder if finder != Finder.RUN},
    )


def _findings(root: Path, plan: RoundPlan) -> Mapping[str, Mapping[Finder, list[str]]]:
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
