"""Tables, cell by cell, and their place in a page."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.__main__ import PAGE
from tests.bench.goals import ENGINE_GOALS
from tests.bench.results import BenchError, Results
from tests.bench.samples import log_result, results
from tests.bench.table import document, page, write_between_marks
from tests.bench.workloads import SIDES, WORKLOADS

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
        (
            "What each engine has to reach",
            [
                "100b-none, warm × Kafka 6.25 9.00 12.0 missed 5.00 8.00 – missed",
                "100b-none, cold × Kafka 2.50 3.00 5.00 missed 1.25 1.50 – missed",
                "2,000 small logs: dry run s – – – – 9.00 12.0 6.00 reached",
                "2,000 small logs: run s 4.00 5.00 3.00 reached 13.0 8.90 – missed",
                "largest worker, resident, over all logs MiB 250 300 – reached 300 300 – reached",
                "driver, resident, over all logs MiB 170 300 – reached 200 300 – reached",
            ],
        ),
        (
            "Warm rounds",  # with the range of single turns
            [
                "100b-none 500 1,000 25% 10.0 12.0 1.60 2.00 6.25 (5.00–7.50) "
                "2.00 3.00 5.00 (3.00–10.0)"
            ],
        ),
        (
            "Whole commands, from the shell's prompt to the report",
            ["100b-none 1.00 10.0 12.0 4.00 5.00 2.50 (2.25–2.50) 8.00 10.0 1.25 (1.11–1.71)"],
        ),
        (
            "Parts of a warm round, seconds",
            [
                "100b-none Spark warm 6.00 2.00 2.00 0.50 0.50 1.00 1.50",
                "100b-none local warm 2.10 1.60 0.75 0.25 0.25 0.00 1.75",
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
            "Many partitions",
            [
                "`plan` 10,000 60,000 5.00 4.00 250",
                "`configs` 10,000 60,000 0.40 0.30 80",
                "`explain` 10,000 60,000 0.25 0.50 70",
                "`recover` 9,000 54,000 8.00 6.00 90",
                "a log manager's start 8,000 48,000 2.00 2.00 90",
            ],
        ),
        (
            "Many small logs, whole commands",
            [
                "Kafka 2,000 40.0 40.0 20.0",
                "Spark, dry run 2,000 9.00 9.00 4.50",
                "Spark, run 2,000 13.0 13.0 6.50",
                "local, run 2,000 4.00 4.00 2.00",
            ],
        ),
        (
            "100b-4gb by so many executors of one core",
            ["Spark, 1 8.00 9.00", "local warm 3.00 6.00"],
        ),
        ("Swap of one log", ["1,000 1 10.0 2.00", "4,000 1 40.0 2.00"]),
        (
            "`inspect`, beside a dry run",  # of Spark single turns 3/2, 2/2, 4/2; and 4/4, 3/3, 5/4
            [
                "100b-4gb: counting ÷ scan Spark warm 1.50 (1.00–2.00) 200 –",
                "100b-4gb: inspection ÷ scan and resolve Spark warm 1.00 (1.00–1.25) 200 –",
                "100b-4gb: counting ÷ scan local warm 1.50 (1.50–3.00) 150 100",
                "100b-4gb: inspection ÷ scan and resolve local warm 1.25 (1.00–2.00) 150 100",
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


def test_a_log_without_a_warm_turn_is_in_the_table_of_commands_alone() -> None:
    log = log_result("small")
    for of_warm in (log.warm_cpu_seconds, log.warm_phases, log.local_cpu_seconds, log.local_phases):
        of_warm.clear()
    for side in ("warm", "local"):
        del log.samples[side]
    text = document(Results({"machine": "m"}, logs=(log,)))
    assert rows_of(text, "Whole commands, from the shell's prompt to the report")[1][0] == "small"
    assert "Warm rounds" not in text
    assert "warm round" not in text


def test_a_side_that_was_not_measured_has_dashes() -> None:
    log = log_result()
    for side in ("local", "cold"):
        del log.samples[side]
    text = document(Results({"machine": "m"}, logs=(log,)))
    assert rows_of(text, "Warm rounds")[1][-6:-2] == ["–", "–", "–", "2.00"]
    assert (
        rows_of(text, "Whole commands, from the shell's prompt to the report")[1][-3:] == ["–"] * 3
    )


def test_growth_is_of_each_side_that_has_it() -> None:
    short, long = log_result("100b-0.8gb", 1_000), log_result("100b-4gb", 800)
    del long.samples["warm"]
    text = document(Results({"machine": "m"}, logs=(short, long)))
    head = "### Growth: CPU seconds per GB of 100b-4gb against 100b-0.8gb"
    assert text.split(head)[1].split() == [
        "-",
        "Kafka:",
        "+25.0",
        "%",
        "-",
        "local",
        "warm:",
        "+25.0",
        "%",
    ]


def test_the_page_has_goals_and_seconds_alone() -> None:
    text = page(results())
    titles = [line for line in text.splitlines() if line.startswith("### ")]
    assert titles == [
        "### What each engine has to reach",
        "### What the rest has to reach",
        "### Warm rounds",
        "### Whole commands, from the shell's prompt to the report",
    ]
    assert document(results()).startswith(text.rstrip("\n"))


def test_the_page_stays_short_with_everything_measured() -> None:
    logs = [log_result(workload.name) for workload in WORKLOADS]
    for workload, log in zip(WORKLOADS, logs, strict=True):
        for side in {*SIDES} - {*workload.sides}:
            del log.samples[side]
    many = results(*logs)
    engine = tuple(
        replace(many.engine[0], log=log, what=what)
        for log, _, what in (start.partition(": ") for start in ENGINE_GOALS)
    )
    swaps = tuple(replace(swap, segments_a_group=n) for swap in many.swaps for n in (1, 10))
    measured = {f"{what}, {codec}": 1.0 for what in ("append", "read") for codec in ("none", "lz4")}
    facts = {str(number): "fact" for number in range(5)}
    text = page(replace(many, machine=facts, engine=engine, swaps=swaps, tables=measured))
    without = PAGE.read_text("utf-8").split(BEGIN)[0], PAGE.read_text("utf-8").split(END)[1]
    prose_lines = sum(part.count("\n") for part in without)
    assert prose_lines + text.count("\n") + len([BEGIN, "", "", END]) <= 150


def test_a_quick_run_says_so_first() -> None:
    assert document(results(quick=True)).startswith("**A quick run")
    assert "quick" not in document(results())


def test_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(MARKED)
    for _ in range(2):
        write_between_marks(file, "bench", "new\n")
        assert file.read_text() == MARKED.replace("old", "new")
    file.write_text(PAGE.read_text("utf-8"))
    write_between_marks(file, "bench", "new\n")  # the page of the project has its marks


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}\n", MARKED + MARKED])
def test_a_page_without_its_marks_is_left_alone(text: str, tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(text)
    with pytest.raises(BenchError, match=r"expected one line"):
        write_between_marks(file, "bench", "new")
    assert file.read_text() == text
