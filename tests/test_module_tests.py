"""Each module has a test file of its name, or a row of tests/README.md says which test holds it."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "tests" / "README.md"
HEADING = "## Modules without a test file of their name"
MODULE = re.compile(r"\b(?:storage|cleaner_jobs|compactor)(?:\.\w+)+")
IMPORT = re.compile(r"\bfrom ((?:storage|cleaner_jobs|compactor)[\w.]*) import (\w+)")
ROW = re.compile(r"\| `(tests/[\w/]+\.py)` \| ([^|]+) \|")


def modules() -> Iterator[str]:
    for package in ("storage", "cleaner_jobs", "compactor"):
        for path in (PROJECT / package).rglob("*.py"):
            if path.name != "__init__.py":
                yield ".".join(path.relative_to(PROJECT).with_suffix("").parts)


def has_own_test(module: str) -> bool:
    *folders, name = module.split(".")
    return (PROJECT / "tests" / Path(*folders) / f"test_{name}.py").is_file()


def rows() -> Mapping[str, list[str]]:
    """Return the modules that each test file of the table holds."""
    section = PAGE.read_text("utf-8").partition(HEADING)[2].partition("\n## ")[0]
    return {test: re.findall(r"`([\w.]+)`", named) for test, named in ROW.findall(section)}


@cache
def path_of(module: str) -> Path | None:
    path = PROJECT / Path(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)


@cache
def named_by(path: Path) -> frozenset[str]:
    """Return what a file imports, anywhere in it, and the modules that its strings name."""
    names = set()
    stub = path.with_suffix(".pyi")  # of public names that are loaded when they are asked for
    text = path.read_text("utf-8") + (stub.read_text("utf-8") if stub.exists() else "")
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=aliases):
                names |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.Constant(value=str(words)):
                names |= set(MODULE.findall(words))
                names |= {".".join(found) for found in IMPORT.findall(words)}  # of a program
    if {"-m", "compactor"} <= {
        each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)
    }:
        names.add("compactor.__main__")
    parents = {name.rpartition(".")[0] for name in names}
    return frozenset(names | parents)


def reached_from(test: str) -> set[Path]:
    reached, to_do = set(), [PROJECT / test]
    while to_do:
        path = to_do.pop()
        if path not in reached:
            reached.add(path)
            to_do += [found for name in named_by(path) if (found := path_of(name))]
    return reached


def of_all(groups: Iterable[list[str]]) -> list[str]:
    return sorted(name for group in groups for name in group)


def test_each_module_has_a_test_file_of_its_name_or_a_row() -> None:
    without = sorted(module for module in modules() if not has_own_test(module))
    assert of_all(rows().values()) == without


def test_a_test_reaches_the_modules_that_it_is_said_to_hold() -> None:
    beyond = {
        module: test
        for test, named in rows().items()
        for reached in [reached_from(test)]
        for module in named
        if path_of(module) not in reached
    }
    assert beyond == {}
