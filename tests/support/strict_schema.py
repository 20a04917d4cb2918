"""The JSON Schema of endings, made strict: a field that it does not know is one too many.

The schema itself allows new fields. What the present code writes has to stand in it, all of it.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema

from compactor.views.report_types import SCHEMA_FILE

_STAND_INS = (-1, 2**63 - 1)
# The value of a setting is what Kafka takes; a time that was asked for, what was asked.
_WITH_NUMBERS_OF_KAFKA = ("Setting", "OffsetForTime")


def strict_validator() -> jsonschema.Draft202012Validator:
    """For the document of any command."""
    schema: dict[str, Any] = json.loads(Path(SCHEMA_FILE).read_text())
    whole = {_name(part.get("then", part)["$ref"]) for part in schema["allOf"]}
    for name, part in schema["$defs"].items():
        if name not in whole:  # a document is one of these and an ending: closed below
            part["additionalProperties"] = False
        if name not in _WITH_NUMBERS_OF_KAFKA:
            _forbid_stand_ins(part)
    return jsonschema.Draft202012Validator({**schema, "unevaluatedProperties": False})


def _forbid_stand_ins(part: Any) -> None:
    """No integer may stand for none: that is what null is for."""
    if isinstance(part, list):
        for each in part:
            _forbid_stand_ins(each)
    elif isinstance(part, dict):
        for each in list(part.values()):
            _forbid_stand_ins(each)
        if part.get("type") in ("integer", "number"):
            part["not"] = {"enum": list(_STAND_INS)}


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
