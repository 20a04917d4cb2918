"""The example of the README, run over directories in the place of those that it names."""

import doctest
from pathlib import Path

README = Path(__file__).parents[4] / "README.md"


def test_the_example_of_a_log(tmp_path: Path) -> None:
    section = README.read_text().partition("## A log as a library")[2].partition("\n## ")[0]
    text = section.replace("/data/", f"{tmp_path}/")
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    assert len(example.examples) >= 10
    assert doctest.DocTestRunner().run(example).failed == 0
