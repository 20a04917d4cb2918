"""The numbered rules of docs/spec: which there are, and who cites them.

`python -m tests.rule_numbers` lists the rules that no test cites.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from compactor.host.output import print_line

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "docs" / "spec"
RULE = re.compile(
    r"(?<![\w.-])((?:C|F|E|EE|L|S|V)-\d+(?:\.\d+)*)(?:\s+to\s+((?:C|F|E|EE|L|S|V)-\d+(?:\.\d+)*))?"
)
LAST_NUMBER = re.compile(r"\d+$")
CASE = re.compile(r"""["'/]([cef])(\d+(?:\.\d+)?)-[a-z]""")  # a golden log, as e42-committed
# what one would cite: neither a section, nor a step, a table of edge cases or a golden vector
TO_CITE = re.compile(r"ee?-\d+|(?!c-22-|f-17-)[cfl]-\d+-\d+")
ANCHOR = re.compile(r'<a id="((?:c|f|e|ee|l|s|v)-[\d-]+)"></a>')
SUFFIXES = {".py", ".md", ".toml", ".java", ".yml"}
PLACES = ("compactor", "cleaner_jobs", "storage", "demo", "conf", "docs", "tests")


class Citation(NamedTuple):
    rule: str
    path: Path
    line: int


def anchor(rule: str) -> str:
    """The anchor of a rule in its page: c-8-2 for C-8.2."""
    return rule.lower().replace(".", "-")


def defined(pages: Iterable[Path] | None = None) -> list[str]:
    """The anchors of all rules, in the order of the pages; of one that stands twice, both."""
    found = []
    for page in sorted(SPEC.glob("*.md")) if pages is None else pages:
        found += ANCHOR.findall(page.read_text(encoding="utf-8"))
    return found


def sources() -> Iterator[Path]:
    """Every file that may cite a rule."""
    yield from sorted(ROOT.glob("*.md"))
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def citations(paths: Iterable[Path]) -> Iterator[Citation]:
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for found in RULE.finditer(text):
            for rule in _range(found[1], found[2] or ""):
                yield Citation(rule, path, text.count("\n", 0, found.start()) + 1)
        if path.is_relative_to(ROOT / "tests" / "golden"):
            for found in CASE.finditer(text):
                rule = f"{found[1].upper()}-{found[2].lstrip('0')}"
                yield Citation(rule, path, text.count("\n", 0, found.start()) + 1)


def _range(first: str, last: str) -> list[str]:
    """Both ends of "C-8.2 to C-8.5", and what lies between if the last number alone differs."""
    start, end = LAST_NUMBER.search(first), LAST_NUMBER.search(last)
    if start and end and first[: start.start()] == last[: end.start()]:
        numbers = range(int(start[0]), int(end[0]) + 1)
        return [f"{first[: start.start()]}{number}" for number in numbers]
    return [rule for rule in (first, last) if rule]


def uncited() -> list[str]:
    """The rules that no test cites, neither by their number nor by that of one of their steps."""
    tests = (path for path in sources() if path.is_relative_to(ROOT / "tests"))
    cited = {anchor(citation.rule) for citation in citations(tests)}
    rules = [name for name in defined() if TO_CITE.fullmatch(name)]
    return [
        rule
        for rule in rules
        if not any(name == rule or name.startswith(f"{rule}-") for name in cited)
    ]


def main() -> None:
    rules = uncited()
    print_line(f"{len(rules)} rules that no test cites:")
    for rule in rules:
        letter, *numbers = rule.upper().split("-")
        print_line(f"  {letter}-{'.'.join(numbers)}")


if __name__ == "__main__":
    main()
