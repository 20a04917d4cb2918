"""Names parameters in the errors that a Python caller gets, and leaves options to the command line.

What checks a value names the option of the command line, which stands in an error's `as_options`.
"""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from compactor.errors import ConfigError

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
def python_words(signature: inspect.Signature) -> Iterator[None]:
    """Let errors in arguments name the parameters of a function."""
    try:
        yield
    except ConfigError as error:
        if error.args == (str(error),):
            error.as_options = error.as_options or str(error)
            error.args = (in_python(str(error), signature),)
        raise


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
    """Each name with how a caller comes to it; a field of a field comes before its like above."""
    for name, parameter in signature.parameters.items():
        yield from _fields(parameter.annotation, name)
    for name in signature.parameters:
        yield name, name


def _fields(kind: Any, path: str) -> Iterator[tuple[str, str]]:
    is_of_options = (
        isinstance(kind, type) and is_dataclass(kind) and kind.__module__.startswith(__package__)
    )
    for field in fields(kind) if is_of_options else ():
        yield field.name, f"{path}.{field.name}"
        yield from _fields(field.type, f"{path}.{field.name}")
