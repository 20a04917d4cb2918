"""All damages: python -m tests.damage."""

import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.damage import campaign
from tests.support.local_round import open_local_round


def main() -> int:
    began = time.monotonic()
    found = {}
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        local = open_local_round(Path(scratch, "work"), patch)
        for kind, cases in campaign.KINDS.items():
            found[kind] = list(campaign.run(cases(), local, Path(scratch)))
    sys.stdout.write(f"{campaign.table(found)}\nin {time.monotonic() - began:.0f} s\n")
    wrong = [each for of_kind in found.values() for each in of_kind]
    return int(any(each.ending in campaign.WRONG for each in wrong))


if __name__ == "__main__":
    sys.exit(main())
