"""Python examples on pages, held against the types of what they use."""

import doctest
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WITH_PROMPTS = ["docs/library.md", "docs/api.md"]
WITHOUT = ["README.md", "docs/tables.md"]
FIRST_WORDS = ("from ", "import ", "arrow.")  # of an indented block that is Python
BEFORE = """
from pyspark.sql import SparkSession
from storage.codecs.compression import Codec
from compactor import Log
import pyarrow as pa
log: Log
spark: SparkSession
table: pa.Table
"""


def doctests(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_examples(text)
    return "".join(example.source for example in examples)


def blocks(page: Path) -> str:
    """Indented blocks that begin as Python does, as one module."""
    every = page.read_text(encoding="utf-8").split("\n\n")
    code = [textwrap.dedent(each) for each in every if each.startswith("    ")]
    return BEFORE + "\n".join(each for each in code if each.startswith(FIRST_WORDS))


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of all examples."""
    folder = tmp_path_factory.mktemp("examples")
    for page in WITH_PROMPTS:
        (folder / f"{Path(page).stem}_examples.py").write_text(doctests(ROOT / page))
    for page in WITHOUT:
        (folder / f"{Path(page).stem.lower()}_blocks.py").write_text(blocks(ROOT / page))
    words = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    words += ["--no-error-summary"]  # strict, as the configuration says
    ended = subprocess.run(
        [*words, *map(str, sorted(folder.glob("*.py")))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return ended.stdout + ended.stderr


def test_examples_have_the_types_of_what_they_use(checked: str) -> None:
    assert checked == ""


def test_every_page_with_python_is_checked() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    has_python = re.compile(r"^ *(>>> |(from [\w.]+ )?import \w+( as \w+)?$)", re.MULTILINE)
    found = {p.relative_to(ROOT) for p in pages if has_python.search(p.read_text(encoding="utf-8"))}
    assert found == {Path(page) for page in WITH_PROMPTS + WITHOUT}


def test_there_are_examples() -> None:
    assert "log.read(0)" in doctests(ROOT / "docs/library.md")
    assert all("spark.dataSource.register" in blocks(ROOT / page) for page in WITHOUT)
