"""Names parameters in the errors that a Python caller gets, and leaves options to the command line.

What checks a value names the option of the command line, or only the value. That message stands in
an error's `as_options`.
"""

import errno
import inspect
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from compactor.errors import ConfigError
from compactor.outcome.exit_codes import UsageError

_OPTION = re.compile(r"(?<![\w/.-])--([a-z][a-z-]*[a-z])(?: (?:DIR|FILE|REGEX|TOPIC|BYTES)\b)?")
_PLACEHOLDER = re.compile(r"(?<![\w/.-])(LOG_DIR|RUN_DIR|TO_DIR)\b")
# elsewhere these are what an option takes
_FIRST = re.compile(r"^(PATH|SCRIPT|DIR|TOPIC-PARTITION|TOPIC)\b(?!-)")
_OTHERWISE = {  # parameters and fields that are not named as their option is, the first that fits
    "against": ("before",),
    "as-of": ("text",),
    "fail-if": ("texts",),
    "from": ("first",),
    "keep-for": ("keep_for_ms",),
    "log-dir": ("log_dirs",),
    "manifest": ("log_dir",),
    "on-corrupt": ("fail_on_corrupt",),
    "output": ("path",),
    "records": ("path",),
    "run-report": ("run_reports", "paths", "path"),
    "sample": ("sample_bytes",),
    "set": ("settings",),
    "to": ("end",),
    "topic": ("topic_partition",),
    "topic-partition": ("partitions",),
    "wait": ("wait_seconds",),
}


@contextmanager
def python_words(signature: inspect.Signature, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Let errors in arguments name the parameters of a function."""
    try:
        yield
    except ConfigError as error:
        if error.args == (str(error),):
            error.as_options = error.as_options or str(error)
            error.args = (in_python(_with_name(str(error), arguments), signature),)
        raise
    except OSError as error:
        name = _of_too_long_a_name(error, arguments)
        if name is None:
            raise
        unfit = UsageError(f"{name} {error.filename}: {error.strerror}")
        unfit.as_options = f"{error.filename}: {error.strerror}"
        raise unfit from error


def _with_name(text: str, arguments: Mapping[str, Any]) -> str:
    """Put the parameter before a value with which an error begins."""
    for name, value in arguments.items():
        for where, each in _texts(name, value):
            if text.startswith((f"{each}: ", f"{each!r}: ")):
                return f"{where} {text}"
    return text


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


def in_python(text: str, signature: inspect.Signature) -> str:
    """Put the parameter, with the field within it, in the place of each option that has one."""
    known = dict(_parameters(signature))

    def parameter(option: str) -> str | None:
        name = option.lower().replace("_", "-")
        possible = (name.replace("-", "_"), f"{name.replace('-', '_')}s", *_OTHERWISE.get(name, ()))
        return next((known[each] for each in possible if each in known), None)

    for pattern in (_FIRST, _OPTION, _PLACEHOLDER):
        text = pattern.sub(lambda found: parameter(found[1]) or found[0], text)
    return text


def _parameters(signature: inspect.Signature) -> Iterator[tuple[str, str]]:
    """Yield each parameter and field with the path to it; inner fields come first."""
    for name, parameter in signature.parameters.items():
        yield from _fields(parameter.annotation, name)
    for name in signature.parameters:
        yield name, name


def _fields(kind: Any, path: str) -> Iterator[tuple[str, str]]:
    for field in fields(kind) if _is_of_options(kind) else ():
        yield field.name, f"{path}.{field.name}"
        yield from _fields(field.type, f"{path}.{field.name}")


def _is_of_options(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind) and kind.__module__.startswith(__package__)
