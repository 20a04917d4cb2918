"""The JSON Schema is that of the types, and says no to what is none of our documents."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compactor.views.report_types import SCHEMA_FILE, report_schema
from tests.browser.documents import run_document

SCHEMA: dict[str, Any] = json.loads(Path(SCHEMA_FILE).read_text())


def test_the_file_is_that_of_the_types() -> None:
    """After a change of them: python -m compactor.views.report_types."""
    assert report_schema() == SCHEMA


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def ending(**changes: object) -> dict[str, object]:
    document = {k: v for k, v in run_document(0).items() if k not in ("totals", "logs", "phases")}
    return {**document, "command": "dump", **changes}


def test_an_ending_is_one() -> None:
    jsonschema.validate(ending(), SCHEMA)
    jsonschema.validate(ending(command="run", error="locked"), SCHEMA)  # nothing more is known


@pytest.mark.parametrize(
    "changes",
    [
        {"reason_code": "because"},
        {"status": "fine"},
        {"schema_version": 1},
        {"changed": None},
        {"log_dirs": ["/data"]},
        {"started_at_ms": "now"},
        {"command": "run"},  # without totals, and without an error
    ],
)
def test_what_is_none(changes: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(ending(**changes), SCHEMA)


@pytest.mark.parametrize("name", ["changed", "run_id", "reason_code", "version", "host", "seconds"])
def test_what_every_ending_has_is_required(name: str) -> None:
    document = ending()
    del document[name]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)
