"""python -m tests.disturbed errors|writer [--only SCENE] [--one-of N]: commands, disturbed.

errors: each file operation of each command fails, with each error that it can fail with, once and
from then on. writer: between each two of them another writer does each of the things he can do.
--check-indexes: by the kernels, which are compiled for that, in about a minute of each processor.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from tests.bounds.checked_indexes import run_with_indexes_checked
from tests.campaign import Campaign, Case
from tests.disturbed.campaign import ERRORS, WRITER, disturbances, scenes_named, stage_of
from tests.disturbed.scenes import COPIES, SCENES

CHECK_INDEXES = "--check-indexes"


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    for scene in scenes_named(wanted.only):
        if wanted.who == ERRORS or scene in SCENES:  # a copy is nobody else's place of work
            own = root / scene.name
            own.mkdir()
            yield from disturbances(stage_of(scene, own), wanted.who)


CAMPAIGN = Campaign(
    "tests.disturbed",
    __doc__,
    cases,
    groups=[scene.name for scene in (*SCENES, *COPIES)],
    options={
        "who": {"choices": [ERRORS, WRITER]},
        CHECK_INDEXES: {"action": "store_true"},
    },
    in_memory=True,
    jobs=os.cpu_count() or 1,
)
if __name__ == "__main__":
    if CHECK_INDEXES in sys.argv:
        others = [word for word in sys.argv[1:] if word != CHECK_INDEXES]
        sys.exit(run_with_indexes_checked("tests.disturbed", others))
    sys.exit(CAMPAIGN.main())
