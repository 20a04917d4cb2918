"""Tables, cell by cell."""

from tests.bench.results import Results
from tests.bench.samples import log_result, results
from tests.bench.table import document, markdown


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its rule."""
    table = text.split(f"### {heading}\n\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [rows[0], *rows[2:]]


def test_columns_are_padded_to_the_widest() -> None:
    assert markdown(["log", "s"], [["a", "1.00"], ["longer", "12"]]).splitlines() == [
        "| log    |    s |",
        "| ------ | ---: |",
        "| a      | 1.00 |",
        "| longer |   12 |",
    ]


def test_speed() -> None:
    head, row = rows_of(document(results()), "Speed, seconds")
    assert row == [
        "100b-none",
        "500",
        "1,000",
        "25%",
        "10.0",
        "1.00",
        "8.00",
        "2.00",
        "50.0",
        "250",
    ]
    assert len(head) == len(row)


def test_ratios_come_with_the_range_of_single_turns() -> None:
    (_, row) = rows_of(document(results()), "Ratios of seconds")
    assert row[1:3] == ["5.00 (3.00–10.0)", "1.25 (1.11–1.71)"]
    assert row[3:] == ["2.00 (1.00–4.00)", "8.00 (7.00–9.00)"]


def test_cpu_seconds() -> None:
    (_, row) = rows_of(document(results()), "CPU seconds")
    assert row[1:4] == ["12.0", "10.0", "3.00"]
    assert row[4:7] == ["24.0", "20.0", "6.00"]
    assert row[7:] == ["0.50", "1.00", "1.50"]


def test_memory_has_a_row_a_side() -> None:
    _, *rows = rows_of(document(results()), "Peak memory, MiB")
    assert rows == [
        ["100b-none", "Kafka", "–", "700", "–", "–", "–", "–"],
        ["100b-none", "ours warm", "200", "400", "300", "180", "120", "900"],
    ]


def test_phases() -> None:
    assert rows_of(document(results()), "Phases of a warm round, seconds") == [
        ["log", "first round", "second, counted", "scan", "swap"],
        ["100b-none", "6.00", "2.00", "2.00", "0.50"],
    ]


def test_plan() -> None:
    (_, row) = rows_of(document(results()), "`plan`")
    assert row == ["10,000", "60,000", "5.00", "4.00", "250"]


def test_recovery() -> None:
    (_, row) = rows_of(document(results()), "`recover`")
    assert row == ["9,000", "54,000", "8.00", "6.00", "90"]


def test_opening() -> None:
    (_, row) = rows_of(document(results()), "Logs opened by a log manager")
    assert row == ["8,000", "48,000", "2.00", "2.00", "90"]


def test_swaps() -> None:
    assert rows_of(document(results()), "Swap of one log") == [
        ["segments", "in a group", "seconds", "CPU ms a segment"],
        ["1,000", "1", "10.0", "2.00"],
        ["4,000", "1", "40.0", "2.00"],
    ]


def test_inspection() -> None:
    """Of single turns 3/2, 2/2 and 4/2; and 4/4, 3/3 and 5/4."""
    assert rows_of(document(results()), "`inspect`, beside a dry run") == [
        ["log: processor time", "ratio", "worker, MiB", "driver, MiB"],
        ["100b-4gb: counting ÷ scan", "1.50 (1.00–2.00)", "200", "–"],
        ["100b-4gb: inspection ÷ scan and resolve", "1.00 (1.00–1.25)", "200", "–"],
    ]


def test_growth() -> None:
    run = results(log_result("100b-0.8gb", 1_000), log_result("100b-4gb", 800))
    assert "- ours warm: +25.0 %" in document(run)


def test_a_log_without_a_warm_turn_has_dashes() -> None:
    log = log_result("small")
    del log.samples["warm"]
    log.warm_cpu_seconds.clear()
    log.warm_phases.clear()
    text = document(Results({"machine": "m"}, logs=(log,)))
    assert rows_of(text, "Speed, seconds")[1][-3:] == ["–", "50.0", "–"]
    assert rows_of(text, "CPU seconds")[1][-4:] == ["–"] * 4
    assert "Phases" not in text


def test_a_quick_run_says_so_first() -> None:
    assert document(results(quick=True)).startswith("**A quick run")
    assert "quick" not in document(results())
