"""Every test that the promises and the differences name exists: else nothing holds a row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(?:((?:tests/)?[\w/]+\.py))?(?:::)?(test_\w+)?`")
E37 = "log.cleaner.io.buffer.size"  # in the one row that has no test: it says "does not apply"


def files_named(name: str) -> list[Path]:
    return [ROOT / name] if (ROOT / name).exists() else [*(ROOT / "tests").rglob(name)]


@pytest.mark.parametrize(("page", "least"), [("promises.md", 80), ("differences.md", 40)])
def test_every_test_that_is_named_is_there(page: str, least: int) -> None:
    """A name without a file is of the last file before it."""
    missing, named, files = [], 0, list[Path]()
    for name, test in NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if not (name or test):
            continue
        files = files_named(name) if name else files
        named += 1
        if not files:
            missing.append(name)
        elif test and not any(f"def {test}(" in f.read_text(encoding="utf-8") for f in files):
            missing.append(test)
    assert missing == []
    assert named > least


def test_every_difference_has_one() -> None:
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ") and "Kafka 4.3.1" not in row]
    assert len(rows) >= 25
    assert [row for row in rows if ".py`" not in row.rsplit("|", 2)[1] and E37 not in row] == []
