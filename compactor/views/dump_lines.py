"""Rows of a dump as lines: an object a line, or the same facts as `name value` pairs."""

import json
from typing import Any

from compactor.inspect.dump import Row

_DATA = ("key", "value", "headers")  # what producers wrote


def json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def text_line(row: Row) -> str:
    """The kind, then names and values; what a batch or record has not is left out."""
    facts = dict(row)
    kind = facts.pop("kind")
    pairs = [
        f"{name} {_text_value(name, value)}"
        for name, value in facts.items()
        if name in ("key", "value") or not (value is None or value is False or value == [])
    ]
    indent = "  " if kind == "record" else ""
    return f"{indent}{kind}  " + "  ".join(pairs)


def _text_value(name: str, value: Any) -> str:
    """Data is quoted, so that the text "null" is not taken for no value."""
    if isinstance(value, str) and name not in _DATA and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)
