"""Values as JSON and the schema of their types: what is expected was written by hand."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import pytest

from compactor.outcome.json_values import (
    ALWAYS,
    FLAT,
    HIDDEN,
    IN_SUMMARY,
    MAY_LACK,
    OF_ENDING,
    Schema,
    json_property,
    summary_property,
    to_json,
    written,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    colour: Colour | None = None

    @property
    @json_property
    def is_far(self) -> bool:
        return self.x > 9


@dataclass(frozen=True, slots=True)
class Line:
    points: tuple[Point, ...]
    counts: dict[Colour, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawingDocument:
    name: str
    parts: list[Line] | None = field(default=None, metadata=MAY_LACK)


FAR = {"x": 10, "colour": "red", "is_far": True}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (1.5, 1.5),
        ("a", "a"),
        (Colour.RED, "red"),
        (Point(10, Colour.RED), FAR),
        (Point(1), {"x": 1, "colour": None, "is_far": False}),
        (
            Line((Point(10, Colour.RED),), {Colour.BLUE: 2}),
            {"points": [FAR], "counts": {"blue": 2}},
        ),
        ({"a": [Point(10, Colour.RED)]}, {"a": [FAR]}),
        ((), []),
    ],
)
def test_a_value_as_json(value: object, expected: object) -> None:
    found = to_json(value)
    assert found == expected
    assert type(found) is type(expected)


def test_the_fields_keep_their_order() -> None:
    assert list(to_json(Point(1))) == ["x", "colour", "is_far"]


@pytest.mark.parametrize("is_partial", [False, True])
def test_the_schema_of_types(is_partial: bool) -> None:
    schema = Schema({Point: "Dot"}, (Line,) if is_partial else ())
    assert schema.of(list[DrawingDocument]) == {
        "type": "array",
        "items": {"$ref": "#/$defs/Drawing"},
    }
    colour: dict[str, Any] = {"enum": ["red", "blue"]}
    assert schema.parts["Dot"] == {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "colour": {"anyOf": [colour, {"type": "null"}]},
            "is_far": {"type": "boolean"},
        },
        "required": ["x", "colour", "is_far"],
    }
    counts = {"propertyNames": colour, "additionalProperties": {"type": "integer"}}
    assert schema.parts["Line"] == {
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": {"$ref": "#/$defs/Dot"}},
            "counts": {"type": "object", **counts},
        },
        "required": [] if is_partial else ["points", "counts"],
    }


def test_a_type_of_documents_alone_is_called_without_that_word() -> None:
    schema = Schema({}, ())
    assert schema.of(DrawingDocument) == {"$ref": "#/$defs/Drawing"}
    assert schema.parts["Drawing"]["required"] == ["name"]
    assert schema.parts["Line"]["required"] == ["points", "counts"]


def test_two_types_have_two_names() -> None:
    schema = Schema({Point: "Line"}, ())
    with pytest.raises(AssertionError, match="two types are called Line"):
        schema.of(Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    JSON_NAMES: ClassVar = (
        *("sides", "is_big", "name", "secret", "began", "point", "note", "size", "shown"),
    )

    name: str = field(metadata=ALWAYS)
    secret: str = field(default="s", metadata=HIDDEN)
    began: str = field(default="now", metadata=OF_ENDING)
    point: Point | None = field(default=None, metadata=FLAT)
    note: str | None = field(default=None, metadata=MAY_LACK)
    size: float = field(default=1.25, metadata=written(digits=1, name="width"))
    shown: int = field(default=1, metadata=written(attribute="sum"))
    sides: int = field(default=4, metadata=IN_SUMMARY)
    besides: int = 0

    @property
    @summary_property
    def is_big(self) -> bool:
        return self.sides > 9

    @property
    def sum(self) -> str:
        return f"{self.sides} in all"


def test_metadata_of_fields_say_how_they_are_written() -> None:
    nulls = {"x": None, "colour": None, "is_far": None}
    begin = {"sides": 4, "is_big": False, "name": "n", "began": "now"}
    end = {"width": 1.2, "shown": "4 in all"}
    assert list(to_json(Shape(name="n")).items()) == list((begin | nulls | end).items())
    whole = to_json(Shape(name="n", note="a", point=Point(10, Colour.RED)))
    assert list(whole.items()) == list((begin | FAR | {"note": "a"} | end).items())
    assert to_json(Shape(name="n"), is_summary=True) == {"sides": 4, "is_big": False, "name": "n"}


def test_the_schema_says_what_metadata_say() -> None:
    schema, partial = Schema({}, ()), Schema({}, (Shape,))
    for each in (schema, partial):
        each.of(Shape)
    found = schema.parts["Shape"]
    assert found["properties"]["note"] == {"type": "string"}
    assert found["properties"]["shown"] == {"type": "string"}
    assert found["properties"]["x"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    every = ["sides", "is_big", "name", "x", "colour", "is_far", "width", "shown"]
    assert found["required"] == every
    assert partial.parts["Shape"]["required"] == ["name", "x", "colour", "is_far"]
