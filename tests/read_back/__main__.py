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
        yield from edited_files(kinds, wanted.files, wanted.drawn_by, root)


OPTIONS: Options = {
    "--files": {"type": int, "default": 5000, "help": "of all kinds together"},
    "--drawn-by": {"type": int, "default": 1, "help": "the seed of all files"},
    "--kind": {"help": "files of one kind alone"},
}
if __name__ == "__main__":
    sys.exit(Campaign("tests.read_back", __doc__, cases, options=OPTIONS).main())
