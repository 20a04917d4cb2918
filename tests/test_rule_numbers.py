"""Every rule number that is cited is defined in docs/spec, and no operator reads one; those of the
storage engine are cited by tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.product_source import trees
from tests.rule_numbers import ROOT, RULE, SPEC, anchor, citations, defined, sources, uncited

# a heading of a rule, and the first cell of an edge case: anchor and number
NUMBERED = re.compile(r'^(?:#+ |\| )<a id="([cfelsv]+-[\d-]+)"></a>([A-Z]\S+) ', re.MULTILINE)


def test_every_rule_that_is_cited_is_defined() -> None:
    rules, found = set(defined()), list(citations(sources()))
    assert [citation for citation in found if anchor(citation.rule) not in rules] == []
    assert len(found) > 1000


def test_every_rule_is_defined_once_and_under_its_number() -> None:
    rules = defined()
    assert sorted(rules) == sorted(set(rules))
    numbered = [
        (name, rule)
        for page in sorted(SPEC.glob("*.md"))
        for name, rule in NUMBERED.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(numbered) > 300
    assert [(name, rule) for name, rule in numbered if name != anchor(rule)] == []


def test_a_citation_is_one_rule_or_a_range_of_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("UTF-8, C-11.9 to C-11.11; E-9 to E-10 (F-16.1.5)\nF-3.1", encoding="utf-8")
    assert [(rule, line) for rule, _, line in citations([page])] == [
        *((f"C-11.{number}", 1) for number in (9, 10, 11)),
        ("E-9", 1),
        ("E-10", 1),
        ("F-16.1.5", 1),
        ("F-3.1", 2),
    ]


def test_rules_that_no_test_cites_can_be_listed() -> None:
    """Listed, not asked for: many say what a running broker does, which there is none of here."""
    found = set(uncited())
    assert "c-21-1" in found  # how the cleaner is slowed down
    assert not found & {"c-8-2", "e-5", "f-16-1"}


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and value of every string of a module but those that stand alone, as docstrings do."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def test_no_message_has_a_rule_number() -> None:
    found = [
        f"{path}:{line}: {value}"
        for path, tree in {**trees(), **trees(("demo",))}.items()
        for line, value in strings(tree)
        if RULE.search(value) or "§" in value
    ]
    assert found == []


def test_no_help_and_no_setting_is_explained_by_a_rule_number() -> None:
    """The docstrings of commands are their help."""
    commands = ROOT / "compactor" / "command_line"
    files = sorted(path for path in (ROOT / "conf").rglob("*") if path.is_file())
    pages = [
        *commands.glob("*_command.py"),
        commands / "commands.py",
        commands / "command.py",
        ROOT / "compactor" / "settings" / "rules.py",
        *files,
    ]
    assert len(pages) > 2
    assert [path for path in pages if RULE.search(path.read_text(encoding="utf-8"))] == []


def test_every_rule_of_the_engine_has_a_test() -> None:
    assert [rule for rule in uncited() if rule.startswith(("l-", "ee-"))] == []
