"""Columns that go where a terminal is narrow, and names that stay whole."""

from compactor.views.fitting_table import Column, name_lines, table_lines, whole_words

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


def test_words_stand_beside_names_of_usual_length_and_below_longer_ones() -> None:
    rows = [("orders-0", "its end was cut off"), ("a" * 30, "two files, /data/x-y-z and more")]
    assert [text.plain for text in name_lines(rows, 30)] == [
        "orders-0  its end was cut off",
        "a" * 30,
        "          two files,",
        "          /data/x-y-z and more",
    ]


def test_no_word_is_broken() -> None:
    found = whole_words("in /data/kafka/orders-0: damaged", 10)
    assert [text.plain for text in found] == ["in", "/data/kafka/orders-0:", "damaged"]
    assert [text.plain for text in whole_words("", 10)] == [""]
