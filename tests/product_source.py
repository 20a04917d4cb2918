"""The source of the product, parsed once for all tests that look at it."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("storage", "cleaner_jobs", "compactor")


@cache
def tree_of(path: Path) -> ast.Module:
    """A module, of the tests too."""
    return ast.parse(path.read_text("utf-8"))


@cache
def trees(packages: tuple[str, ...] = PACKAGES) -> Mapping[str, ast.Module]:
    """Every module by its path below the root of the project."""
    paths = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    return {str(path.relative_to(ROOT)): tree_of(path) for path in paths}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of every module, with the module's path."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            yield path, node
