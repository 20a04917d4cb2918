"""Checks a value that was read from JSON against the type that it has to have."""

import math
from collections.abc import Collection, Mapping
from enum import EnumType
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from storage.errors import json_text as json_text

_LEAST_LONG, _MAX_LONG = -(2**63), 2**63 - 1


def is_of_type(value: Any, type_: Any) -> bool:
    """Return whether a value of JSON can stand for a type: a list for a tuple, text for an enum.

    Whole numbers are those of 64 bits, and true is none of them.
    """
    origin, arguments = get_origin(type_), get_args(type_)
    if type_ is Any:
        return True
    if type_ is int:
        return type(value) is int and _LEAST_LONG <= value <= _MAX_LONG
    if type_ is float:
        return type(value) in (int, float) and math.isfinite(value)
    if type_ in (str, bool, NoneType):
        return type(value) is type_
    if isinstance(type_, EnumType):
        members: list[Any] = list(type_)
        return isinstance(value, str) and value in [member.value for member in members]
    if origin in (Union, UnionType):
        return any(is_of_type(value, each) for each in arguments)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(is_of_type(v, arguments[1]) for v in value.values())
    if origin is None:  # of no value that JSON has, such as a datetime
        return False
    return isinstance(value, list) and _are_of_types(value, origin, arguments)


def _are_of_types(values: list[Any], origin: Any, arguments: tuple[Any, ...]) -> bool:
    if origin is tuple and arguments[-1] is not Ellipsis:
        pairs = zip(values, arguments, strict=False)
        return len(values) == len(arguments) and all(is_of_type(*pair) for pair in pairs)
    assert origin in (tuple, list, Collection), origin
    return all(is_of_type(value, arguments[0]) for value in values)


def text_in(value: object) -> str:
    """Give a value of JSON that is text. Raise TypeError for any other."""
    if not isinstance(value, str):
        raise TypeError(f"{json_text(value)} is not text")
    return value
