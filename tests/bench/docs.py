"""Puts the tables into docs/benchmarks.md, between two marks; what stands around them stays."""

from pathlib import Path

from tests.bench.errors import BenchError

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks.md"
BEGIN = "<!-- begin: written by make bench -->"
END = "<!-- end: written by make bench -->"


def with_tables(text: str, tables: str) -> str:
    """The text with tables in place of whatever stood between the marks."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise BenchError(f"{DOCS.name}: expected one line {BEGIN!r}, and {END!r} after it")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    return f"{before}{BEGIN}\n\n{tables.strip()}\n\n{after}"


def write(tables: str, path: Path | None = None) -> None:
    page = path or DOCS
    page.write_text(with_tables(page.read_text("utf-8"), tables), "utf-8")
