"""`python -m tests.read_back`: files that were edited at random are read, or refused in words."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign import Campaign, Case, Options
from tests.read_back.campaign import edited_files
from tests.read_back.targets import targets


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    with pytest.MonkeyPatch.context() as patch:
        kinds = targets(root, patch)
        if wanted.kind:
            kinds = {wanted.kind: kinds[wanted.kind]}
        yield from edited_files(kinds, wanted.count, wanted.seed, root)


OPTIONS: Options = {
    "--count": {"type": int, "default": 5000, "help": "of all kinds together"},
    "--seed": {"type": int, "default": 1, "help": "the seed of all files"},
    "--kind": {"help": "files of one kind alone"},
}
CAMPAIGN = Campaign("tests.read_back", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
