"""Rule numbers are for readers of the code: what an operator reads has none."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULE = re.compile(r"(?<![\w-])(?:C|F|E|EE|L)-\d+(?:\.\d+)*|§")
PACKAGES = ("compactor", "cleaner_jobs", "storage", "demo")


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and value of every string of a module but those that stand alone, as docstrings do."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def test_no_message_has_a_rule_number() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {value}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, value in strings(ast.parse(path.read_text(encoding="utf-8")))
        if RULE.search(value)
    ]
    assert found == []


def test_no_setting_is_explained_by_a_rule_number() -> None:
    settings = sorted((ROOT / "conf").iterdir())
    assert settings
    assert [path for path in settings if RULE.search(path.read_text(encoding="utf-8"))] == []
