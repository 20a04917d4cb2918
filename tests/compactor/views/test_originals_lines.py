"""How much of what went is kept, where, and the commands that it takes, to be pasted."""

import os
import subprocess

import pytest

from compactor.outcome.round_report import OriginalsReport
from compactor.views.report_table import originals_lines


@pytest.mark.parametrize(
    ("linked", "copied", "told"),
    [
        (
            27_900_000,
            0,
            "27.9 MB in 53 files are kept in /o/cafe, as hard links: no disk space is freed "
            "until they are discarded.",
        ),
        (
            0,
            5_000,
            "5.0 kB in 53 files are kept in /o/cafe, as copies, which take that room there until "
            "they are discarded.",
        ),
        (
            2_000,
            5_000,
            "7.0 kB in 53 files are kept in /o/cafe, 2.0 kB as hard links: no disk space "
            "is freed until they are discarded; 5.0 kB as copies.",
        ),
    ],
)
def test_how_much_is_kept_where(linked: int, copied: int, told: str) -> None:
    assert originals_lines(OriginalsReport("/o/cafe", 53, linked, copied)) == [
        f"Originals: {told}",
        "  to discard them: compactor undo /o/cafe --discard",
        "  to undo the run: compactor undo /o/cafe",
    ]


def test_a_path_is_quoted_for_a_shell() -> None:
    first, discard, undo = originals_lines(OriginalsReport("/o/it's/cafe", 1, 5, 0))
    assert "in 1 file are kept" not in first
    assert discard.endswith("undo '/o/it'\"'\"'s/cafe' --discard")
    assert undo.endswith("undo '/o/it'\"'\"'s/cafe'")


def test_a_path_that_does_not_print_is_still_one_for_a_shell() -> None:
    """Bytes that are not UTF-8 stand in it: bash is asked what it makes of the word."""
    path = os.fsdecode(b"/o/it's \xff\\x41/cafe")
    _, discard, _ = originals_lines(OriginalsReport(path, 1, 5, 0))
    word = discard.partition("undo ")[2].removesuffix(" --discard")
    assert word.isprintable() and word.isascii()
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert said.stdout == b"/o/it's \xff\\x41/cafe"


def test_where_nothing_was_replaced_there_are_no_lines() -> None:
    assert originals_lines(OriginalsReport("/o/cafe", 0, 0, 0)) == []
