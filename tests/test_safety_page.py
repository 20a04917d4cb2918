"""Every test that docs/safety.md names exists: a promise that nothing holds is none."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(tests/[\w/.]+)?(?:::(test_\w+))?`")


def test_every_test_that_is_named_is_there() -> None:
    """A name without a file is of the last file before it."""
    missing, named, file = [], 0, ""
    for path, test in NAMED.findall((ROOT / "docs" / "safety.md").read_text(encoding="utf-8")):
        if not (path or test):
            continue
        file = path or file
        named += 1
        if not (ROOT / file).exists():
            missing.append(file)
        elif test and f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"):
            missing.append(f"{file}::{test}")
    assert missing == []
    assert named > 80
