"""python -m tests.engine.errors: every operation on a file fails, in every operation of the engine.

With EIO, ENOSPC, or only a part done, once or from then on. Told are counts, and what was lost or
not told; exit 1 if anything was. --one-of: every Nth failure alone.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from compactor.host.output import print_line
from tests.engine.crash.stories import STORIES, Story
from tests.engine.errors.failing import Outcome, course_of, failures_of, tried

TOLD = 10  # of each story


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.errors", description=__doc__)
    parser.add_argument("--one-of", type=int, default=1)
    parser.add_argument("--story", choices=[story.name for story in STORIES], action="append")
    wanted = parser.parse_args()
    endings, total, wrong = Counter[str](), 0, 0
    for story in STORIES:
        if wanted.story and story.name not in wanted.story:
            continue
        found = outcomes_of(story, wanted.one_of)
        bad = [each for each in found if each[1].problems]
        print_line(f"{story.name}: {len(found)} failures, {len(bad)} wrong")
        for name, outcome in bad[:TOLD]:
            print_line(f"{name}: {outcome.ending}: {'; '.join(outcome.problems[:3])}")
        endings.update(outcome.ending for _, outcome in found)
        total, wrong = total + len(found), wrong + len(bad)
    for ending, count in endings.most_common():
        print_line(f"{count:6} {ending}")
    print_line(f"{total} failures, {wrong} wrong")
    return int(wrong > 0)


def outcomes_of(story: Story, one_of: int) -> Sequence[tuple[str, Outcome]]:
    """By what failed."""
    with tempfile.TemporaryDirectory(prefix="engine-errors-") as scratch:
        course = course_of(story, Path(scratch))
        found = []
        for failure in [*failures_of(course)][::one_of]:
            operation = course.operations[failure.at]
            name = f"{failure}, {operation.kind} {Path(operation.path).name}"
            found.append((name, tried(course, failure, Path(scratch) / "failing")))
    return found


if __name__ == "__main__":
    sys.exit(main())
