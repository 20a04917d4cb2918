"""Tables, cell by cell, and their place in a page."""

from pathlib import Path

import pytest

from tests.bench.__main__ import PAGE
from tests.bench.results import BenchError, Results
from tests.bench.samples import log_result, results
from tests.bench.table import document, write_between_marks

BEGIN, END = "<!-- begin: written by make bench -->", "<!-- end: written by make bench -->"
MARKED = f"before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n"


def rows_of(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its rule."""
    table = text.split(f"### {heading}\n\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [rows[0], *rows[2:]]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Speed, seconds", ["100b-none 500 1,000 25% 10.0 1.00 8.00 2.00 4.00 1.60 50.0 250 312"]),
        (
            "Ratios of seconds",  # with the range of single turns
            [
                "100b-none 6.25 (5.00–7.50) 2.50 (2.25–2.50) 5.00 (3.00–10.0) 1.25 (1.11–1.71) "
                "1.60 (1.50–2.00)"
            ],
        ),
        (
            "CPU seconds",
            [
                "100b-none 12.0 10.0 3.00 5.00 2.00 24.0 20.0 6.00 10.0 4.00 "
                "0.50 1.00 1.50 0.25 1.75"
            ],
        ),
        (
            "Peak memory, MiB",
            [
                "100b-none Kafka – 700 – – – –",
                "100b-none Spark warm 200 400 300 180 120 900",
                "100b-none local warm 170 – 250 160 110 600",
            ],
        ),
        (
            "Phases of a warm round, seconds",
            [
                "100b-none Spark warm 6.00 2.00 2.00 0.50",
                "100b-none local warm 2.10 1.60 0.75 0.25",
            ],
        ),
        ("`plan`", ["10,000 60,000 5.00 4.00 250"]),
        ("`recover`", ["9,000 54,000 8.00 6.00 90"]),
        ("Logs opened by a log manager", ["8,000 48,000 2.00 2.00 90"]),
        ("Swap of one log", ["1,000 1 10.0 2.00", "4,000 1 40.0 2.00"]),
        (
            "`inspect`, beside a dry run",  # single turns 3/2, 2/2, 4/2; and 4/4, 3/3, 5/4
            [
                "100b-4gb: counting ÷ scan 1.50 (1.00–2.00) 200 –",
                "100b-4gb: inspection ÷ scan and resolve 1.00 (1.00–1.25) 200 –",
            ],
        ),
        (
            "The storage engine, microseconds of processor time each",
            ["1 KB batches: append 4.00 8.00 0.50 (0.50–1.50)"],
        ),
    ],
)
def test_each_table_has_the_medians(heading: str, expected: list[str]) -> None:
    head, *rows = rows_of(document(results()), heading)
    assert [" ".join(row) for row in rows] == expected
    assert {len(head)} == {len(row) for row in rows}


def test_a_log_without_a_warm_turn_has_dashes() -> None:
    log = log_result("small")
    for of_warm in (log.warm_cpu_seconds, log.warm_phases, log.local_cpu_seconds, log.local_phases):
        of_warm.clear()
    for side in ("warm", "local"):
        del log.samples[side]
    text = document(Results({"machine": "m"}, logs=(log,)))
    assert rows_of(text, "Speed, seconds")[1][-5:] == ["4.00", "–", "50.0", "–", "–"]
    assert rows_of(text, "CPU seconds")[1][-6:] == ["–"] * 6
    assert "Phases" not in text


def test_a_quick_run_says_so_first() -> None:
    assert document(results(quick=True)).startswith("**A quick run")
    assert "quick" not in document(results())


def test_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    for _ in range(2):
        write_between_marks(page, "bench", "new\n")
        assert page.read_text() == MARKED.replace("old", "new")
    page.write_text(PAGE.read_text("utf-8"))
    write_between_marks(page, "bench", "new\n")  # the page of the project has its marks


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}\n", MARKED + MARKED])
def test_a_page_without_its_marks_is_left_alone(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(BenchError, match=r"expected one line"):
        write_between_marks(page, "bench", "new")
    assert page.read_text() == text
