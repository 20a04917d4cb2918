"""The examples of docs/library.md, run over directories in the place of those that it names."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "library.md"


def test_the_examples_of_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("/data/", f"{tmp_path}/")
    example = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(example.examples) == 13
    assert doctest.DocTestRunner().run(example).failed == 0
