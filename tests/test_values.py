"""Values of more than five fields are built by keyword.

By position, two fields of one type can be exchanged without anybody noticing.
"""

import ast
from collections.abc import Iterator, Mapping

from tests.product_source import PACKAGES, trees

MANY = 6
# for each file of a listing, for each append: by keyword it takes twice as long
BY_POSITION = {
    ("storage/log/log_dir.py", "Segment"),
    ("storage/files/local.py", "Entry"),
    ("storage/log/plain_append.py", "LogAppendInfo"),
}


def field_names(node: ast.ClassDef) -> list[str]:
    """Of a NamedTuple or a dataclass; of another class none."""
    kinds = " ".join(ast.unparse(base) for base in (*node.bases, *node.decorator_list))
    if "NamedTuple" not in kinds and "dataclass" not in kinds:
        return []
    return [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]


def large_values(modules: Mapping[str, ast.Module]) -> set[str]:
    classes = [
        n for tree in modules.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)
    ]
    return {node.name for node in classes if len(field_names(node)) >= MANY}


def by_position(path: str, tree: ast.Module, large: set[str]) -> Iterator[tuple[str, str]]:
    """Calls with two or more arguments by position. A single one may be what the value is of, or
    all fields of it as they were read: `Part(*values)`."""
    foreign = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] not in PACKAGES
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > 1:
            name = ast.unparse(node.func).split(".")[-1]
            if name in large - foreign:
                yield path, name


def test_values_of_many_fields_are_built_by_keyword() -> None:
    modules = trees()
    large = large_values(modules)
    assert {"Part", "Rewritten", "Stretch", "LogReport"} <= large
    found = {call for path, tree in modules.items() for call in by_position(path, tree, large)}
    assert found == BY_POSITION


def test_a_value_that_is_built_by_position_is_found() -> None:
    tree = ast.parse("class Pair(NamedTuple):\n" + "".join(f"    f{n}: int\n" for n in range(6)))
    calls = ast.parse("Pair(1, f1=2, f2=3)\nPair(1, *rest)\nPair(*rest)\nfrom rich import Other\n")
    assert list(by_position("x.py", calls, large_values({"x.py": tree}))) == [("x.py", "Pair")]
