"""The example of the README, run over a directory in the place of the one that it names."""

import doctest
from pathlib import Path

README = Path(__file__).parents[4] / "README.md"


def test_the_example_of_a_log(tmp_path: Path) -> None:
    section = README.read_text().partition("## A log as a library")[2].partition("\n## ")[0]
    text = section.replace("/data/orders-0", str(tmp_path / "orders-0"))
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    assert len(example.examples) >= 8
    assert doctest.DocTestRunner().run(example).failed == 0
