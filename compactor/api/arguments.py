"""Checks the arguments of the API's functions against their annotations, before anything is done.

A path may be a `str` or an `os.PathLike`; where several values are expected, one will do. An error
in an argument names the parameter, with the field within it.
"""

import errno
import inspect
import math
import numbers
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache, wraps
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from compactor.errors import ConfigError, UsageError
from compactor.offline_log.record_filter import NewRecord
from compactor.settings.options import Number
from storage.arguments import PathArg, is_text, unfolded
from storage.errors import shown

_WORDS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    types.NoneType: "None",
    datetime: "a datetime",
}
_OF_OPTIONS = ("compactor.api.", "compactor.settings.rules")  # modules of records that callers make
_AS_THEY_ARE = (bytes, types.NoneType)
_NO_SERIES = (str, bytes, bytearray, memoryview, Mapping)
_SERIES = (Sequence, Collection, Iterable, list, tuple)

Paths = PathArg | Sequence[PathArg]  # one, or several

F = TypeVar("F", bound=Callable[..., Any])


class _Unfit(NamedTuple):
    """A value that does not fit an annotation."""

    name: str  # of the parameter, with the field or the place within it
    value: Any
    expected: str  # in words


class _UnfitError(Exception):
    def __init__(self, unfit: _Unfit) -> None:
        super().__init__(unfit)
        self.unfit = unfit


def checked(function: F) -> F:
    """Wrap a function so that an argument of a wrong type is a UsageError that names it."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            name = function.__qualname__.removesuffix(".__init__")
            raise UsageError(str(error), f"{name}()") from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = fitted_argument(
                name, value, signature.parameters[name].annotation
            )
        with errors_name_parameters(signature, bound.arguments):
            found = function(*bound.args, **bound.kwargs)
        return _items_of_generator(found, bound) if inspect.isgeneratorfunction(function) else found

    return typing.cast(F, call)


def _items_of_generator(items: Iterable[Any], bound: inspect.BoundArguments) -> Iterator[Any]:
    with errors_name_parameters(bound.signature, bound.arguments):
        yield from items


def path_texts(paths: Paths) -> tuple[str, ...]:
    """Return one path, or several, as texts."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return tuple(os.fspath(path) for path in several)


def fitted_argument(name: str, value: Any, annotation: Any) -> Any:
    """Return a value as its annotation wants it: a path as text, one value as a series of one.

    Raise UsageError, which names the parameter.
    """
    try:
        return _fitted(name, value, annotation)
    except _UnfitError as error:
        where, found, expected = error.unfit
        kind = type(found).__name__
        raise UsageError(f"expected {expected}, not {shown(found)} ({kind})", where) from None


def _fitted(name: str, value: Any, annotation: Any) -> Any:
    if annotation in (Any, object, inspect.Parameter.empty) or isinstance(annotation, str):
        return value  # a string names a type that is not imported here
    annotation = {Paths: Sequence[str], PathArg: str}.get(annotation, annotation)
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _fitting_one_of(name, value, annotation)
    if origin is Annotated:
        return _fitting_bounded(name, value, *get_args(annotation))
    if origin is Literal:
        return _required(name, value, annotation, value in get_args(annotation))
    if _is_function(annotation):
        return _required(name, value, annotation, callable(value))
    if origin in _SERIES:
        return _fitting_series(name, value, annotation)
    if isinstance(origin, type):
        return _required(name, value, annotation, isinstance(value, origin))
    return _fitting_class(name, value, annotation)


def _fitting_one_of(name: str, value: Any, annotation: Any) -> Any:
    several = get_args(annotation)
    if type(value) in several and type(value) in _AS_THEY_ARE:
        return value
    within = []  # of the right kind of thing, with something wrong in it
    for each in several:
        try:
            return _fitted(name, value, each)
        except _UnfitError as error:
            if error.unfit.name != name or error.unfit.expected != _words(each):
                within.append(error)
    if within:
        raise within[0]
    raise _UnfitError(_Unfit(name, value, _words(annotation)))


def _fitting_bounded(name: str, value: Any, annotation: Any, limits: Number) -> Any:
    found = _fitted(name, value, annotation)
    if not limits.allows(found):
        raise _UnfitError(_Unfit(name, value, f"{_words(annotation)} {limits.words}"))
    return found


def _fitting_series(name: str, value: Any, annotation: Any) -> Any:
    items = get_args(annotation)
    if get_origin(annotation) is tuple and len(items) == 2 and items[1] is not ...:
        is_pair = isinstance(value, tuple | list) and len(value) == 2
        _required(name, value, annotation, is_pair)
        return tuple(_fitted(name, each, kind) for each, kind in zip(value, items, strict=True))
    item = items[0] if items else Any
    if item is str and isinstance(value, str | os.PathLike):
        return (_fitted(f"{name}[0]", value, str),)
    is_series = isinstance(value, Iterable) and not isinstance(value, _NO_SERIES)
    _required(name, value, annotation, is_series)
    if not isinstance(value, Sequence | set | frozenset):
        if get_origin(annotation) is Iterable and isinstance(value, Iterator):
            return (
                fitted_argument(f"{name}[{i}]", each, item) for i, each in enumerate(value)
            )  # once
        return _fitted(name, _items(name, value, annotation), annotation)
    found = [_fitted(f"{name}[{i}]", each, item) for i, each in enumerate(value)]
    return tuple(found) if get_origin(annotation) is tuple or item is str else value


def _items(name: str, value: Any, annotation: Any) -> list[Any]:
    try:
        return list(value)
    except TypeError:  # an array of no dimension says that it has items
        raise _UnfitError(_Unfit(name, value, _words(annotation))) from None


def _fitting_class(name: str, value: Any, annotation: Any) -> Any:
    if annotation is None or annotation is types.NoneType:
        return _required(name, value, types.NoneType, value is None)
    if annotation is str and isinstance(value, os.PathLike):
        value = unfolded(value)
    if annotation is str and isinstance(value, str) and not is_text(value):
        raise _UnfitError(_Unfit(name, value, "text without a NUL that can be encoded"))
    if annotation is float:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return _required(name, value, annotation, is_number and _is_float(value))
    if annotation is int:
        is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        _required(name, value, annotation, is_integer)
        if not -(2**63) <= value < 2**63:
            raise _UnfitError(_Unfit(name, value, "an integer of 64 bits"))
        return int(value)
    if not isinstance(annotation, type):
        return value
    if issubclass(annotation, Enum) and isinstance(value, str):
        _required(name, value, annotation, value in [each.value for each in annotation])
        return annotation(value)
    _required(name, value, annotation, isinstance(value, annotation))
    changed = {}
    for field, kind in _fields_of(annotation).items():
        given = getattr(value, field)
        found = _fitted(f"{name}.{field}", given, kind)
        if found is not given:
            changed[field] = found
    if not changed:
        return value
    return replace(value, **changed) if is_dataclass(annotation) else value._replace(**changed)


@cache
def _fields_of(kind: type) -> dict[str, Any]:
    """Fields of a value that callers build themselves, with their annotations."""
    if _is_of_options(kind):
        return {each.name: each.type for each in fields(kind)}
    return typing.get_type_hints(kind) if kind is NewRecord else {}


def _is_function(annotation: Any) -> bool:
    """Say whether a function is wanted: any, or one that a protocol describes (`OnProgress`)."""
    is_protocol = getattr(annotation, "_is_protocol", False)
    return is_protocol or Callable in (annotation, get_origin(annotation))


def _is_float(value: Any) -> bool:
    try:
        return not math.isnan(value)
    except OverflowError:  # of an integer
        return False


def _required(name: str, value: Any, annotation: Any, fits: bool) -> Any:
    if not fits:
        raise _UnfitError(_Unfit(name, value, _words(annotation)))
    return value


def _words(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _words(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        words = list(dict.fromkeys(_words(each) for each in get_args(annotation)))
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    if origin is Literal:
        return " or ".join(repr(each) for each in get_args(annotation))
    if _is_function(annotation):
        return "a function"
    if origin in _SERIES:
        items = get_args(annotation)
        if origin is tuple and len(items) == 2 and items[1] is not ...:
            return f"a {_pair(items)}"
        return f"a list of {_plural(items[0])}" if items and items[0] is not Any else "a list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dictionary"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(repr(each.value) for each in annotation)
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _pair(items: Sequence[Any], noun: str = "pair") -> str:
    return f"{noun} of {_words(items[0])} and {_words(items[1])}"


def _plural(annotation: Any) -> str:
    items = get_args(annotation)
    if get_origin(annotation) is tuple and len(items) == 2 and items[1] is not ...:
        return _pair(items, "pairs")
    return {str: "strings", int: "integers"}.get(annotation, _words(annotation))


@contextmanager
def errors_name_parameters(
    signature: inspect.Signature, arguments: Mapping[str, Any]
) -> Iterator[None]:
    """Let errors in arguments name the parameters of a function."""
    try:
        yield
    except ConfigError as error:
        if not error.paths:
            error.paths = _paths_of(error, signature, arguments)
        raise
    except OSError as error:
        name = _of_too_long_a_name(error, arguments)
        if name is None:
            raise
        unfit = UsageError(error.strerror or "", value=error.filename)
        unfit.paths = {"": name}
        raise unfit from error


def _paths_of(
    error: ConfigError, signature: inspect.Signature, arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the paths to parameters that an error's message needs.

    What the error names is a parameter, or it is found by the value, or by the file where a setting
    stands.
    """
    paths = _paths_of_names(signature)
    if error.name in paths:
        return paths
    for name, value in arguments.items():
        for where, each in _texts(name, value):
            if error.value is not None and str(error.value) in (each, repr(each)):
                return paths | {error.name: where}
            if f"{error.value or error.name}".startswith((f"{each}: ", f"{each}, ")):
                return paths | {error.name: f"{where} {error.name}".rstrip()}
    return paths


def _of_too_long_a_name(error: OSError, arguments: Mapping[str, Any]) -> str | None:
    """Return the parameter whose value is too long for a name of a file, or of one beside it.

    Any other error of a file may have come up meanwhile.
    """
    if error.errno != errno.ENAMETOOLONG or not isinstance(error.filename, str):
        return None
    path = os.path.abspath(error.filename)
    for name, value in arguments.items():
        for where, each in _texts(name, value):
            given = os.path.abspath(each)
            if path.startswith(given) and "/" not in path.removeprefix(given):
                return where
    return None


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each text of an argument with the path to it, like `options.path`."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _texts(name, each)
    elif _is_of_options(type(value)):
        for field in fields(value):
            yield from _texts(f"{name}.{field.name}", getattr(value, field.name))


def _paths_of_names(signature: inspect.Signature) -> dict[str, str]:
    """Return the path to each parameter and field by its name.

    Of two fields of one name an outer one counts, and a parameter before all.
    """
    within = [
        each
        for name, parameter in signature.parameters.items()
        for each in _fields(parameter.annotation, name)
    ]
    return {**dict(within), **{name: name for name in signature.parameters}}


def _fields(kind: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield each field of a record of options and the path to it, those of inner records first."""
    own = fields(kind) if _is_of_options(kind) else ()
    for field in own:
        yield from _fields(field.type, f"{path}.{field.name}")
    for field in own:
        yield field.name, f"{path}.{field.name}"


def _is_of_options(kind: Any) -> bool:
    return is_dataclass(kind) and getattr(kind, "__module__", "").startswith(_OF_OPTIONS)
