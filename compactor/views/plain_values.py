"""Values with names as objects of JSON: their fields, and what they say of themselves beside."""

from dataclasses import fields, is_dataclass
from typing import Any


def properties_of(type_: type) -> dict[str, property]:
    """What a value of a type says beside its fields, by name."""
    return {name: value for name, value in vars(type_).items() if isinstance(value, property)}


def plain(value: Any) -> Any:
    """Dataclasses and named tuples as objects, other tuples as lists, however deep they stand."""
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    elif hasattr(value, "_fields"):
        names = list(value._fields)
    elif isinstance(value, tuple | list):
        return [plain(own) for own in value]
    else:
        return value
    return {name: plain(getattr(value, name)) for name in [*names, *properties_of(type(value))]}
