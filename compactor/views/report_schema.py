"""The JSON Schema of every document that a command ends with, made of `report_types`.

`report.schema.json` beside it is what comes out; a test holds the two together.
"""

import os
from enum import EnumType
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from compactor.round_report import REPORT_SCHEMA_VERSION
from compactor.views.plain_values import properties_of
from compactor.views.report_json import JsonObject, to_text
from compactor.views.report_types import OF_COMMANDS, Ending

SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")
_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}


def report_schema() -> JsonObject:
    """For any JSON Schema library, draft 2020-12. New fields may come: it forbids none."""
    parts: JsonObject = {}
    ending = _of(Ending, parts)
    rest = [
        {
            "if": {
                "properties": {"command": {"const": command}, "error": False},
                "required": ["command"],
            },
            "then": _of(type_, parts),
        }
        for command, type_ in OF_COMMANDS.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a command of log-compactor ends with",
        "version": REPORT_SCHEMA_VERSION,
        "allOf": [ending, *rest],
        "$defs": parts,
    }


def _of(type_: Any, parts: JsonObject) -> JsonObject:
    if type_ is Any:
        return {}
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    if isinstance(type_, EnumType):
        members: list[Any] = list(type_)
        return {"enum": [member.value for member in members]}
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return {"anyOf": [_of(each, parts) for each in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is NotRequired:
        return _of(arguments[0], parts)
    if origin in (list, tuple):  # a tuple of any length
        return {"type": "array", "items": _of(arguments[0], parts)}
    if origin is dict:
        names = _of(arguments[0], parts)
        values = _of(arguments[1], parts)
        return {"type": "object", "propertyNames": names, "additionalProperties": values}
    if type_.__name__ not in parts:
        parts[type_.__name__] = None  # its place, for those that it refers to
        parts[type_.__name__] = _object(type_, parts)
    return {"$ref": f"#/$defs/{type_.__name__}"}


def _object(type_: Any, parts: JsonObject) -> JsonObject:
    hints = get_type_hints(type_, include_extras=True)
    for name, value in properties_of(type_).items():
        hints[name] = get_type_hints(value.fget)["return"]
    return {
        "type": "object",
        "properties": {name: _of(hint, parts) for name, hint in hints.items()},
        "required": [name for name, hint in hints.items() if get_origin(hint) is not NotRequired],
    }


def write_schema() -> None:
    """Write the file anew, after a change of the types."""
    with open(SCHEMA_FILE, "w", encoding="utf-8") as file:
        file.write(to_text(report_schema()))


if __name__ == "__main__":
    write_schema()
