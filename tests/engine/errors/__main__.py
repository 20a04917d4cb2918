"""python -m tests.engine.errors: every operation on a file fails, in every operation of the engine.

With EIO, ENOSPC, or only a part done, once or from then on. Nothing may be lost or kept quiet.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.campaign import Campaign, Case, Tried
from tests.disturbed.errors import Failure
from tests.engine.crash.stories import STORIES
from tests.engine.errors.failing import Course, course_of, failures_of, tried


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    for story in STORIES:
        if story.name in wanted.only:
            own = root / story.name
            own.mkdir()
            course = course_of(story, own)
            for failure in failures_of(course):
                operation = course.operations[failure.at]
                name = f"{failure}, {operation.kind} {Path(operation.path).name}"
                yield Case(name, partial(_tried, course, failure, own / "failing"), story.name)


def _tried(course: Course, failure: Failure, place: Path) -> Tried:
    outcome = tried(course, failure, place)
    return Tried([f"{outcome.ending}: {each}" for each in outcome.problems], {outcome.ending: 1})


CAMPAIGN = Campaign("tests.engine.errors", __doc__, cases, [story.name for story in STORIES])
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
