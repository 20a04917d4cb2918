"""Many damages through few rounds."""

import shutil
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
