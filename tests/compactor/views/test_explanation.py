"""A log drawn in characters; every line is written here by hand."""

from compactor.inspection.explain import Mark, Section, SectionName
from compactor.views.explanation import drawing

CLEAN = Section(SectionName.CLEAN, 0, 100, 4000)
DIRTY = Section(SectionName.DIRTY, 100, 150, 2000)
WAITING = Section(SectionName.WAITING, 150, 170, 1000)
ACTIVE = Section(SectionName.ACTIVE, 170, 180, 1000)
MARKS = (
    Mark("log start", 0, 0),
    Mark("first dirty", 100, 4000),
    Mark("high watermark", 150, 6000),
    Mark("first uncleanable", 150, 6000),
    Mark("active segment", 170, 7000),
    Mark("log end", 180, 8000),
)


def test_every_part_is_as_wide_as_its_bytes_and_every_bound_below_its_place() -> None:
    """8,000 bytes in 64 columns: 125 each."""
    assert drawing((CLEAN, DIRTY, WAITING, ACTIVE), MARKS, 64) == [
        "░" * 32 + "█" * 16 + "▒" * 8 + "·" * 8,
        "│" + " " * 31 + "│" + " " * 15 + "│" + " " * 2 + "180 log end ┘",
        "│" + " " * 31 + "│" + " " * 4 + "170 active segment ┘",
        "│" + " " * 9 + "150 high watermark, first uncleanable ┘",
        "│" + " " * 31 + "└ 100 first dirty",
        "└ 0 log start",
        "░ clean 4.0 kB   █ dirty 2.0 kB   ▒ dirty, has to wait 1.0 kB   · active segment 1.0 kB",
    ]


def test_a_terminal_without_such_characters_gets_others() -> None:
    assert drawing((DIRTY, ACTIVE), MARKS[:1], 40, in_ascii=True) == [
        "#" * 27 + "." * 13,
        "`- 0 log start",
        "# dirty 2.0 kB   . active segment 1.0 kB",
    ]


def test_the_smallest_part_is_seen() -> None:
    bar, *_ = drawing((CLEAN._replace(size_bytes=10**12), DIRTY._replace(size_bytes=1)), (), 50)
    assert bar == "░" * 49 + "█"
