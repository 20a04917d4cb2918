"""Columns that go where a terminal is narrow, and names that stay whole."""

from compactor.views.fitting_table import Column, table_lines

COLUMNS = (Column("size", 1), Column("ratio", 2), Column("held by", 3, is_text=True))
ROWS = [["orders", "1 B", "50.0%", "a lag"], ["日本", "20 B", "", ""]]


def lines(rows: list[list[str]], width: int) -> list[str]:
    return [
        line for text in table_lines("log", COLUMNS, rows, width) for line in text.plain.split("\n")
    ]


def test_all_columns_where_there_is_room() -> None:
    assert lines(ROWS, 40) == [
        "log     size  ratio  held by",
        "orders   1 B  50.0%  a lag",
        "日本    20 B",  # two cells a character
    ]


def test_the_least_important_columns_go_first() -> None:
    assert lines(ROWS, 27)[0] == "log     size  ratio"
    assert lines(ROWS, 18)[0] == "log     size"
    assert lines(ROWS, 3)[0] == "log  size"  # one column stays


def test_a_long_name_is_not_broken_but_has_its_own_line() -> None:
    name = "a" * 30  # of the others none is longer than 6, so that two columns fit beside it
    found = lines([[name, "1 B", "50.0%", "a lag"], *ROWS], 24)
    assert found == [
        f"{'log':11}  size  ratio",
        name,
        f"{'':11}   1 B  50.0%",
        f"{'orders':11}   1 B  50.0%",
        f"{'日本':9}  20 B",  # of four cells
    ]


def test_a_column_of_nothing_is_none() -> None:
    assert lines([["orders", "1 B", "", ""]], 40) == ["log     size", "orders   1 B"]
