"""The example of the README, behind the one that makes the log which it reads."""

import doctest
from pathlib import Path

README = Path(__file__).parents[3] / "README.md"


def test_the_example_of_a_table(tmp_path: Path) -> None:
    page = README.read_text()
    names = "## A log as a library", "## A log as a table"
    text = "".join(page.partition(name)[2].partition("\n## ")[0] for name in names)
    text = text.replace("/data/", f"{tmp_path}/")
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    assert len(example.examples) >= 13
    assert doctest.DocTestRunner().run(example).failed == 0
