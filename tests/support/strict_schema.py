"""The JSON Schema of endings, made strict: a field that it does not know is one too many.

The schema itself allows new fields. What the present code writes has to stand in it, all of it.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema

from compactor.views.report_schema import SCHEMA_FILE


def strict_validator() -> jsonschema.Draft202012Validator:
    """For the document of any command."""
    schema: dict[str, Any] = json.loads(Path(SCHEMA_FILE).read_text())
    whole = {_name(part.get("then", part)["$ref"]) for part in schema["allOf"]}
    for name, part in schema["$defs"].items():
        if name not in whole:  # a document is one of these and an ending: closed below
            part["additionalProperties"] = False
    return jsonschema.Draft202012Validator({**schema, "unevaluatedProperties": False})


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
