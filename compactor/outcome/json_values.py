"""Values with names as objects of JSON, and the JSON Schema of their types.

An object has the fields of a dataclass or a named tuple, then the properties that are marked with
`json_property`. Where a field of a dataclass is written otherwise, its metadata say so:

    is_data_problem: bool = field(default=False, metadata=HIDDEN)
    counts: Counts = field(metadata=FLAT)
    totals: RunTotals = field(metadata=ALWAYS)

A type with JSON_NAMES has these fields and properties alone, in that order. The type that a command
ends with has all of its fields in the report, and those that are marked ALWAYS or IN_SUMMARY in the
summary, too.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, EnumType
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}
_JSON = "json"
_Getter = TypeVar("_Getter", bound=Callable[[Any], Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a field is written, where that is not by its name and value."""

    is_hidden: bool = False
    is_of_ending: bool = False  # every ending has it: it is described there
    is_flat: bool = False  # the fields of its value take its place; nulls, where it is None
    may_lack: bool = False  # it is left out where it is None
    is_in_summary: bool = False  # of the type that a command ends with
    is_required: bool | None = None  # by the schema; None: as its type says
    may_be_null: bool = False  # by the schema, though it may be left out
    name: str | None = None
    attribute: str | None = None  # whose value is written
    digits: int | None = None  # behind the point


_AS_IT_IS = Writing()


def written(**how: Any) -> Mapping[str, Writing]:
    """Return metadata of a field of a dataclass."""
    return {_JSON: Writing(**how)}


HIDDEN = written(is_hidden=True)
OF_ENDING = written(is_of_ending=True)
FLAT = written(is_flat=True)
MAY_LACK = written(may_lack=True)
IN_SUMMARY = written(is_in_summary=True)
ALWAYS = written(is_in_summary=True, is_required=True)


def json_property(getter: _Getter) -> _Getter:
    """Mark the getter of a property that is written after the fields."""
    setattr(getter, _JSON, _AS_IT_IS)
    return getter


def summary_property(getter: _Getter) -> _Getter:
    """Mark the getter of a property that is written after the fields, and in a summary."""
    setattr(getter, _JSON, Writing(is_in_summary=True))
    return getter


def always_property(getter: _Getter) -> _Getter:
    """Mark the getter of a property that is written in a summary, and that the schema requires."""
    setattr(getter, _JSON, ALWAYS[_JSON])
    return getter


def to_json(value: Any, is_summary: bool = False) -> Any:
    """Return a value as JSON has it, with all that it holds.

    is_summary: leave out fields of the value that a summary does not have.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {to_json(name): to_json(own) for name, own in value.items()}
    if isinstance(value, list) or kind is tuple:
        return [to_json(own) for own in value]
    return _object_of(value, is_summary)


def _object_of(value: Any, is_summary: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kind: Any = type(value)
    for part in _parts(kind):
        how = part.how
        if is_summary and not how.is_in_summary:
            continue
        own = getattr(value, part.attribute)
        if own is None and how.may_lack:
            continue
        if how.is_flat:
            found |= _nulls(kind, part.attribute) if own is None else _object_of(own, is_summary)
        else:
            own = own if how.digits is None else round(own, how.digits)
            found[part.name] = own if type(own) in _PLAIN else to_json(own)
    return found


def names_of(type_: type) -> Iterator[tuple[str, Any]]:
    """Yield the names that a type's fields have in JSON, and their types.

    Without other properties than those of JSON_NAMES, and without what every ending has.
    """
    declared = {*get_type_hints(type_), *getattr(type_, "JSON_NAMES", ())}
    for part, hint in _hinted(type_):
        if part.how.is_flat:
            yield from names_of(_without_none(hint))
        elif part.declared in declared and not part.how.is_of_ending:
            yield part.name, hint


class Schema:
    """Makes the JSON Schema of types, and collects those of the objects in `parts`, by name."""

    def __init__(
        self, names: Mapping[type, str], partial: Collection[type], texts: Collection[type] = ()
    ) -> None:
        """Take the names of types that are called otherwise in the schema.

        Args:
            names: By type; of each other one it is that of its class.
            partial: The types whose fields may be absent, but those that are ALWAYS there.
            texts: Enumerations that may get more members.
        """
        self.parts: dict[str, Any] = {}
        self._names, self._partial, self._texts = names, partial, texts
        self._types: dict[str, Any] = {}  # of the parts

    def of(self, type_: Any) -> dict[str, Any]:
        """Return the schema of a type, which refers to `parts` for objects."""
        if type_ is Any:
            return {}
        if type_ in _PLAIN:
            return {"type": _PLAIN[type_]}
        if type_ in self._texts:
            return self.of(str)
        if isinstance(type_, EnumType):
            members: list[Any] = list(type_)
            return {"enum": [member.value for member in members]}
        origin, arguments = get_origin(type_), get_args(type_)
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(each) for each in arguments]}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (list, tuple, Sequence):  # a tuple of any length
            return {"type": "array", "items": self.of(arguments[0])}
        if origin in (dict, Mapping):
            names, values = map(self.of, arguments)
            return {"type": "object", "propertyNames": names, "additionalProperties": values}
        name = self._names.get(type_, type_.__name__.removesuffix("Document"))
        assert self._types.setdefault(name, type_) is type_, f"two types are called {name}"
        if name not in self.parts:
            self.parts[name] = None  # its place, for those that it refers to
            self.parts[name] = self._object(type_)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, type_: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part, hint in _hinted(type_):
            how = part.how
            if how.is_of_ending:
                continue
            if how.may_lack and not how.is_flat and not how.may_be_null:
                hint = _without_none(hint)
            if how.is_flat:
                flat = self._object(_without_none(hint))
                if NoneType in get_args(hint) and not how.may_lack:
                    for each, schema in flat["properties"].items():
                        flat["properties"][each] = {"anyOf": [schema, self.of(NoneType)]}
                found["properties"] |= flat["properties"]
                found["required"] += [] if how.may_lack else flat["required"]
            else:
                found["properties"][part.name] = self.of(hint)
                is_required = type_ not in self._partial and not how.may_lack
                if is_required if how.is_required is None else how.is_required:
                    found["required"].append(part.name)
        return found


class _Part(NamedTuple):
    name: str
    attribute: str
    how: Writing
    declared: str  # the field or property that has the type


@cache
def _parts(type_: Any) -> tuple[_Part, ...]:
    """Return what the object of a type consists of, in order."""
    hows = dict.fromkeys(getattr(type_, "_fields", ()), _AS_IT_IS)
    if is_dataclass(type_):
        hows = {field.name: field.metadata.get(_JSON, _AS_IT_IS) for field in fields(type_)}
    hows |= _json_properties(type_)
    found = []
    for name in getattr(type_, "JSON_NAMES", hows):
        how = hows.get(name, _AS_IT_IS)
        if not how.is_hidden:
            found.append(_Part(how.name or name, how.attribute or name, how, name))
    return tuple(found)


def _json_properties(type_: type) -> dict[str, Writing]:
    getters = {name: own.fget for name, own in vars(type_).items() if isinstance(own, property)}
    return {name: getattr(own, _JSON) for name, own in getters.items() if hasattr(own, _JSON)}


def _hinted(type_: type) -> Iterator[tuple[_Part, Any]]:
    """Yield each part with the type of its value."""
    hints = get_type_hints(type_, include_extras=True)
    for part in _parts(type_):
        yield part, _hint_of(part, type_, hints)


def _hint_of(part: _Part, type_: Any, hints: Mapping[str, Any]) -> Any:
    attribute = getattr(type_, part.attribute, None)
    if isinstance(attribute, property):
        return get_type_hints(attribute.fget)["return"]
    return hints[part.declared]


@cache
def _nulls(type_: Any, attribute: str) -> dict[str, None]:
    """Return the fields that stand flat in a type, where there is no value of them."""
    value = next(hint for part, hint in _hinted(type_) if part.attribute == attribute)
    return dict.fromkeys(part.name for part in _parts(_without_none(value)))


def _without_none(hint: Any) -> Any:
    return next((each for each in get_args(hint) if each is not NoneType), hint)
