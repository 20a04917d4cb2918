"""`python -m tests.read_back`: files that were edited at random are read, or refused in words."""

import argparse
import sys
import tempfile
from pathlib import Path

import pytest

from compactor.host.output import print_line
from tests.read_back.campaign import untyped_errors
from tests.read_back.targets import targets


def main() -> int:
    """1 where one ends in an error that nobody raised on purpose."""
    parser = argparse.ArgumentParser(prog="python -m tests.read_back")
    parser.add_argument("--count", type=int, default=5000, help="files, of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="files of one kind alone")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="compactor-read-back-") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        kinds = targets(Path(name), patch)
        if options.kind:
            kinds = {options.kind: kinds[options.kind]}
        found = untyped_errors(kinds, options.count, options.seed, Path(name))
    for line in found:
        print_line(line)
    print_line(f"{options.count} files, {len(found)} untyped errors")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
