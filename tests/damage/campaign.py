"""Many damages through few rounds, and what came of them, counted."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from tests.damage import lies, ways
from tests.damage.damaged_logs import Case
from tests.damage.endings import Ending, Found, endings
from tests.support.local_round import LocalRound

CASES_A_ROUND = 400
GARBAGE_SEED, GARBAGE_PER_FILE = 20, 3
WRONG = (Ending.SILENT, Ending.UNTYPED)
KINDS: dict[str, Callable[[], Iterator[Case]]] = {
    "a byte of a log": ways.flips,
    "a log cut short": ways.cuts,
    "another file": ways.other_files,
    "garbage": partial(ways.garbage, GARBAGE_SEED, GARBAGE_PER_FILE),
    "a lie with a fitting checksum": lies.lies,
}


def run(cases: Iterable[Case], local: LocalRound, root: Path) -> Iterator[Found]:
    left, number = iter(cases), 0
    while some := list(islice(left, CASES_A_ROUND)):
        number += 1
        log_dir = root / f"round-{number}"
        yield from endings(some, local, log_dir)
        shutil.rmtree(log_dir)


def table(found: dict[str, list[Found]]) -> str:
    """How often each kind of damage came to each ending."""
    lines = []
    for kind, of_kind in found.items():
        lines.append(f"{kind}: {len(of_kind):,}")
        counts = Counter(each.ending for each in of_kind)
        lines += [f"  {counts[ending]:7,}  {ending}" for ending in Ending if counts[ending]]
    wrong = [each for of_kind in found.values() for each in of_kind if each.ending in WRONG]
    silent = sum(each.ending is Ending.SILENT for each in wrong)
    lines += [f"{each.ending}: {each.case}: {each.told}" for each in wrong[:50]]
    total = sum(map(len, found.values()))
    lines.append(f"{total:,} damages, {silent} silent, {len(wrong) - silent} untyped")
    return "\n".join(lines)
