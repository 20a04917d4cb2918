"""Tables go between the marks and nowhere else."""

from pathlib import Path

import pytest

from tests.bench import docs
from tests.bench.docs import BEGIN, END, with_tables
from tests.bench.errors import BenchError

PAGE = f"before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n"


def test_what_stands_between_the_marks_is_replaced() -> None:
    expected = f"before\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"
    assert with_tables(PAGE, "new\n") == expected
    assert with_tables(expected, "new\n") == expected


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}\n{BEGIN}\n", PAGE + PAGE])
def test_a_page_without_its_marks_is_left_alone(page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(page)
    with pytest.raises(BenchError, match=r"expected one line"):
        docs.write("new", path)
    assert path.read_text() == page


def test_the_page_of_this_project_has_its_marks() -> None:
    assert with_tables(docs.DOCS.read_text("utf-8"), "new")
