"""The score: which lies were caught, by whom first, and whether that is as it has to be."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.bench.table import markdown
from tests.lies.judged import Finder, Judged
from tests.lies.lie import Case

MUST_CATCH = 0.99
SURVIVORS = Path(__file__).with_name("survivors.toml")
SURVIVED = "survived"
COLUMNS = (*Finder, SURVIVED)


class Survivor(NamedTuple):
    """A kind of lie that nothing catches in some logs, why, and one of them."""

    lie: str
    reason: str
    source: str
    seed: int


def listed_survivors() -> list[Survivor]:
    return [Survivor(**entry) for entry in tomllib.loads(SURVIVORS.read_text())["survivor"]]


@dataclass
class Score:
    """Takes in what came of lies. One that could not be told, or changes nothing, is none."""

    first: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    survived: list[Judged] = field(default_factory=list)
    ended: list[Judged] = field(default_factory=list)  # the whole round, as nobody foresaw
    cases: int = 0

    def take(self, judged: Judged) -> bool:
        """Whether it counts."""
        self.cases += 1
        if not judged.counts:
            return False
        if judged.is_end:
            self.ended.append(judged)
        by = next((finder for finder in Finder if finder in judged.finders), SURVIVED)
        self.first[str(judged.case.lie)][by] += 1
        if by == SURVIVED:
            self.survived.append(judged)
        return True

    @property
    def lies(self) -> int:
        return sum(count.total() for count in self.first.values())

    def caught(self, *finders: Finder) -> float:
        """The share that these caught."""
        found = sum(count[finder] for count in self.first.values() for finder in finders)
        return found / max(self.lies, 1)

    def table(self) -> str:
        rows = [
            [lie, *(str(count[column] or "") for column in COLUMNS)]
            for lie, count in self.first.items()
        ]
        total: Counter[str] = sum(self.first.values(), Counter())
        rows.append(["all", *(str(total[column]) for column in COLUMNS)])
        rows.append(["", *(f"{total[c] / max(self.lies, 1):.2%}" for c in COLUMNS)])
        return markdown(["kind of lie", *COLUMNS], rows)

    def problems(self, listed: Sequence[Survivor]) -> list[str]:
        """What is not as it has to be; a listed lie may survive, any other may not."""
        known = {survivor.lie for survivor in listed}
        found = [f"ended the whole round: {judged.case}: {judged.told}" for judged in self.ended]
        found += [
            f"survived and is not listed: {judged.case}"
            for judged in self.survived
            if str(judged.case.lie) not in known
        ]
        if self.caught(*Finder) < MUST_CATCH:
            found.append(f"only {100 * self.caught(*Finder):.2f} % of {self.lies} lies were caught")
        return found


def engine_table(scores: Mapping[str, Score]) -> str:
    """Of each engine how many lies each proof was the first to catch, and which share."""
    rows = []
    for name, score in scores.items():
        total: Counter[str] = sum(score.first.values(), Counter())
        caught, alone = score.caught(*Finder), score.caught(Finder.RUN, Finder.VERIFY)
        shares = f"{100 * caught:.2f} %", f"{100 * alone:.2f} %"
        rows.append([name, str(score.lies), *(str(total[column]) for column in COLUMNS), *shares])
    return markdown(["engine", "lies", *COLUMNS, "caught", "by run and verify alone"], rows)


def no_longer_survive(listed: Sequence[Survivor], judged: Iterable[Judged]) -> list[str]:
    """Listed survivors whose example is caught now, or is no lie: they leave the list."""
    survives = {_name(each.case) for each in judged if each.counts and not each.finders}
    return [
        f"is caught now, or changes nothing, and is still listed: {survivor.lie} "
        f"({survivor.source}, seed {survivor.seed})"
        for survivor in listed
        if (survivor.lie, survivor.source, survivor.seed) not in survives
    ]


def _name(case: Case) -> tuple[str, str, int]:
    return str(case.lie), case.source, case.seed
