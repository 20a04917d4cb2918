"""python -m tests.disturbed errors|writer [--scene NAME] [--one-of N]: commands, disturbed.

errors: each file operation of each command fails, with each error that it can fail with, once and
from then on. writer: between each two of them another writer does each of the things he can do.
Told are counts, and what was lost; exit 1 if anything was. --one-of: every Nth alone. --outcomes:
a file to go on from, which holds one line for each disturbance that has been tried.
--check-indexes: by the kernels, which are compiled for that, in about a minute of each processor.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from compactor.host.output import print_line
from tests.disturbed.campaign import ERRORS, WRITER, Campaign, read
from tests.disturbed.scenes import COPIES, SCENES
from tests.disturbed.stage import Outcome

TOLD = 20  # problems
IN_MEMORY = Path("/dev/shm")


def told(outcomes: Sequence[tuple[str, Outcome]]) -> Iterator[str]:
    """Problems, then counts by what was done and how the command ended."""
    bad = [(scene, outcome) for scene, outcome in outcomes if outcome.problems]
    for scene, outcome in bad[:TOLD]:
        yield f"PROBLEM: {scene}, {outcome!s:.2000}"
    kinds = Counter((outcome.kind, outcome.ending) for _, outcome in outcomes)
    for (kind, ending), count in sorted(kinds.items()):
        yield f"{kind}, {ending}: {count:,}"
    for name in dict.fromkeys(scene for scene, _ in outcomes):
        count, problems = (sum(scene == name for scene, _ in some) for some in (outcomes, bad))
        yield f"{name}: {count:,} tried, {problems:,} with a problem"
    yield f"{len(outcomes):,} tried, {len(bad):,} with a problem"


@contextmanager
def _indexes_checked(cache: Path) -> Iterator[None]:
    """By the kernels of processes that begin meanwhile, which are compiled for that alone."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    before = {name: os.environ.pop(name, None) for name in checked}
    os.environ |= checked
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.disturbed", description=__doc__)
    parser.add_argument("who", choices=[ERRORS, WRITER])
    names = [scene.name for scene in (*SCENES, *COPIES)]
    parser.add_argument("--scene", choices=names, action="append")
    parser.add_argument("--one-of", type=int, default=1)
    parser.add_argument("--outcomes", type=Path)
    parser.add_argument("--check-indexes", action="store_true")
    wanted = parser.parse_args(arguments)
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="disturbed-", dir=place) as scratch:
        root, cache = Path(scratch, "scenes"), Path(scratch, "kernels")
        root.mkdir()
        outcomes = wanted.outcomes or Path(scratch, "outcomes")
        own = names if wanted.who == ERRORS else names[: len(SCENES)]
        scenes = tuple(wanted.scene or own)
        with _indexes_checked(cache) if wanted.check_indexes else nullcontext():
            Campaign(wanted.who, scenes, wanted.one_of, outcomes).run(root)
        found = [(scene, outcome) for scene, outcome in read(outcomes) if scene in scenes]
    for line in told(found):
        print_line(line)
    print_line(f"in {time.monotonic() - began:.0f} s")
    return int(any(outcome.problems for _, outcome in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
