"""The JSON Schema of every document that a command ends with, made of `report_types`.

`report.schema.json` beside it is what comes out; a test holds the two together.
"""

import os

from compactor.outcome.round_report import REPORT_SCHEMA_VERSION
from compactor.views.json_values import Schema
from compactor.views.report_json import JsonObject, to_text
from compactor.views.report_types import NAMES, OF_COMMANDS, PARTIAL, EndingDocument

SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")


def report_schema() -> JsonObject:
    """Return the schema, draft 2020-12. New fields may come: it forbids none."""
    schema = Schema(NAMES, PARTIAL)
    ending = schema.of(EndingDocument)
    rest = [
        {
            "if": {
                "properties": {"command": {"const": command}, "error": False},
                "required": ["command"],
            },
            "then": schema.of(type_),
        }
        for command, type_ in OF_COMMANDS.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a command of log-compactor ends with",
        "version": REPORT_SCHEMA_VERSION,
        "allOf": [ending, *rest],
        "$defs": schema.parts,
    }


def write_schema() -> None:
    """Write the file again after a change of the types."""
    with open(SCHEMA_FILE, "w", encoding="utf-8") as file:
        file.write(to_text(report_schema()))


if __name__ == "__main__":
    write_schema()
