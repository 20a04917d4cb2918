"""Values with names as objects of JSON, and the JSON Schema of their types.

An object has the fields of a dataclass, a named tuple or a TypedDict, and what the first two say of
themselves by properties beside.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, EnumType
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}


def to_json(value: Any) -> Any:
    """Return a value as JSON has it, however deep what it holds stands."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {to_json(name): to_json(own) for name, own in value.items()}
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    elif hasattr(value, "_fields"):
        names = list(value._fields)
    elif isinstance(value, tuple | list):
        return [to_json(own) for own in value]
    else:
        return value
    names += _properties_of(type(value))
    return {name: to_json(getattr(value, name)) for name in names}


class Schema:
    """Makes the JSON Schema of types, and collects those of the objects in `parts`, by name."""

    def __init__(self, names: Mapping[type, str], partial: Collection[type]) -> None:
        """Take the names of types that are called otherwise in the schema.

        Args:
            names: By type; of each other one it is that of its class, without `Document`.
            partial: The types of which every field may be absent.
        """
        self.parts: dict[str, Any] = {}
        self._names, self._partial = names, partial
        self._types: dict[str, Any] = {}  # of the parts

    def of(self, type_: Any) -> dict[str, Any]:
        """Return the schema of a type, which refers to `parts` for objects."""
        if type_ is Any:
            return {}
        if type_ in _PLAIN:
            return {"type": _PLAIN[type_]}
        if isinstance(type_, EnumType):
            members: list[Any] = list(type_)
            return {"enum": [member.value for member in members]}
        origin, arguments = get_origin(type_), get_args(type_)
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(each) for each in arguments]}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is NotRequired:
            return self.of(arguments[0])
        if origin in (list, tuple):  # a tuple of any length
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict:
            names, values = map(self.of, arguments)
            return {"type": "object", "propertyNames": names, "additionalProperties": values}
        name = self._names.get(type_, type_.__name__.removesuffix("Document"))
        assert self._types.setdefault(name, type_) is type_, f"two types are called {name}"
        if name not in self.parts:
            self.parts[name] = None  # its place, for those that it refers to
            self.parts[name] = self._object(type_)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, type_: Any) -> dict[str, Any]:
        hints = get_type_hints(type_, include_extras=True)
        for name, value in _properties_of(type_).items():
            hints[name] = get_type_hints(value.fget)["return"]
        required = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
        return {
            "type": "object",
            "properties": {name: self.of(hint) for name, hint in hints.items()},
            "required": [] if type_ in self._partial else required,
        }


def _properties_of(type_: type) -> dict[str, property]:
    return {name: value for name, value in vars(type_).items() if isinstance(value, property)}
