"""`python -m tests.undo`: what an undoing does after every sequence of up to three steps, and after
seeded ones of four and five, on four kinds of log, held against a model.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.campaign import Campaign, Case
from tests.undo.campaign import played_in
from tests.undo.steps import every, seeded
from tests.undo.world import KINDS


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    kinds = tuple(KINDS)
    with played_in(root) as play:
        for sequence in every(kinds, wanted.steps):
            yield Case(str(sequence), partial(play, sequence), f"up to {wanted.steps} steps")
        for sequence in seeded(kinds, wanted.seeds):
            yield Case(str(sequence), partial(play, sequence), "4 and 5 steps")


CAMPAIGN = Campaign(
    "tests.undo",
    __doc__,
    cases,
    count=5000,
    options={"--steps": {"type": int, "default": 3, "help": "every sequence of up to so many"}},
    in_memory=True,
    jobs=os.cpu_count() or 1,
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
