"""Each public class of the product has a name of its own, so that a search for it finds one."""

import ast
from collections import defaultdict

from tests.product_source import trees


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert len(places) > 500
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
