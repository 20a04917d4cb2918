"""Declares the options that fill the fields of a record: name, default, help, panel of the help.

`option` makes a dataclass field of one. The command line makes its parser, its help and its
completion of these fields; a caller in Python fills the same fields without any text.
"""

import os
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from compactor.errors import UsageError

# panels of the help
LOGS, CONFIGURATION, OUTPUT, SPARK, CHANGE = "Logs", "Configuration", "Output", "Spark", "Change"
LEAST_RATE = 1_000_000  # bytes a second

_KEY = "option"
_DURATION = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE = re.compile(r"(\d{1,18}) ?([kmgt]?b?)", re.ASCII | re.IGNORECASE)
_UNIT_BYTES = {"": 1, "b": 1}
_UNIT_BYTES |= {u + b: 1000**n for n, u in enumerate("kmgt", 1) for b in ("", "b")}
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d{0,3})(,[1-9]\d?)?\]|local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]"
    r"|spark://\S+|k8s://\S+|yarn"
)


class Number(NamedTuple):
    """Limits of a number, for an option or an argument; both are allowed themselves."""

    least: int
    most: int | None = None
    is_whole: bool = True
    shows_most: bool = True  # in the help, which has little room beside a long one

    def read(self, name: str, text: str) -> int | float:
        """Return the number that a text says. Raise UsageError for another text."""
        try:
            number = int(text) if self.is_whole else float(text)
        except ValueError:
            kind = "a whole number" if self.is_whole else "a number"
            raise UsageError(f"{name} {text}: expected {kind}") from None
        if number < self.least:
            raise UsageError(f"{name} {text}: expected {self.least} or more")
        if self.most is not None and number > self.most:
            raise UsageError(f"{name} {text}: expected {self.most} or less")
        return number

    @property
    def range(self) -> str:
        """The limits as the help shows them."""
        if self.most is None or not self.shows_most:
            return f"x>={self.least}"
        return f"{self.least}<=x<={self.most}"

    @property
    def words(self) -> str:
        """The limits in words."""
        return f"from {self.least} on" if self.most is None else f"from {self.least} to {self.most}"

    def allows(self, number: float) -> bool:
        """Return whether a number is within the limits."""
        return self.least <= number and (self.most is None or number <= self.most)


Natural = Annotated[int, Number(0)]
Positive = Annotated[int, Number(1)]
Niceness = Annotated[int, Number(0, 19)]


class Option(NamedTuple):
    """An option of the command line, as the field declares it that it fills."""

    name: str  # "": the field's, with dashes
    metavar: str  # "": it takes no value
    help: str
    panel: str | None
    number: Number | None
    choices: type[StrEnum] | None
    read: Callable[[str, Any], Any] | None  # makes the field's value
    is_repeated: bool
    is_required: bool
    default: str | None  # that the help shows

    def read_early(self, text: str) -> Any:
        """Return a number or a choice, or the text. Raise UsageError for an impossible one."""
        if self.number is not None:
            return self.number.read(self.name, text)
        if self.choices is None:
            return text
        if text not in list(self.choices):
            known = ", ".join(repr(each.value) for each in self.choices)
            raise UsageError(f"{self.name}: {text!r} is not one of {known}")
        return self.choices(text)


def option(
    default: Any,
    metavar: str,
    help: str,
    panel: str | None = None,
    *,
    name: str = "",
    kind: Number | type[StrEnum] | None = None,
    read: Callable[[str, Any], Any] | None = None,
    is_repeated: bool = False,
) -> Any:
    """Return a dataclass field that an option fills.

    The help shows a default that is a number, a word or a choice, unless `help` says it itself.

    Args:
        default: of the field, or what makes it; MISSING for a required option.
        metavar: what the help calls its value; "" for a flag.
        help: at most two lines at 120 columns.
        panel: of the help.
        name: where it is not the field's own with dashes.
        kind: limits of a number, or the choices, the default first.
        read: makes the field's value of the option's name and its text, or its choice.
        is_repeated: the field takes all its values, in their order.
    """
    number, choices = (kind, None) if isinstance(kind, Number) else (None, kind)
    if choices and not metavar:
        metavar = f"<{'|'.join(choices)}>"
    first = next(iter(choices)) if choices else default
    is_said = isinstance(first, bool) or not isinstance(first, int | str) or "Default" in help
    declared = Option(
        name=name,
        metavar=metavar,
        help=help,
        panel=panel,
        number=number,
        choices=choices,
        read=read,
        is_repeated=is_repeated,
        is_required=default is MISSING,
        default=None if is_said else str(first),
    )
    of_field = {"default_factory": default} if callable(default) else {"default": default}
    if default is MISSING:
        of_field = {}
    return field(metadata={_KEY: declared}, **of_field)


def same_option(record: type, name: str) -> Any:
    """Return a dataclass field that the option of another record's field fills."""
    (of_record,) = (each for each in fields(record) if each.name == name)
    return field(metadata=of_record.metadata, default=of_record.default)


def option_of(of_record: "Field[Any]") -> Option | None:
    """Return the option that fills a field, with its name."""
    declared: Option | None = of_record.metadata.get(_KEY)
    if declared is None:
        return None
    return declared._replace(name=declared.name or f"--{of_record.name.replace('_', '-')}")


def options_of(record: type) -> dict[str, Option]:
    """Return the options of a record by the fields that they fill."""
    found = {each.name: option_of(each) for each in fields(record)}
    return {name: each for name, each in found.items() if each is not None}


def setting(name: str, text: str) -> tuple[str, str]:
    """Read NAME=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{name} {text}: expected NAME=VALUE, like delete.retention.ms=3600000")
    return key.strip(), value.strip()


def master(name: str, text: str) -> str:
    """Read a Spark master URL of a known form."""
    if not _MASTER.fullmatch(text):
        expected = "expected local[N], local[*], spark://HOST:PORT, k8s://URL or yarn"
        raise UsageError(f"{name} {text}: {expected}")
    return text


def executor_path(name: str, text: str) -> tuple[str, str]:
    """Read DRIVER=EXECUTOR: a directory of this host, and its path on executors."""
    of_driver, _, of_executor = text.partition("=")
    are_absolute = of_driver.startswith("/") and of_executor.startswith("/")
    if not are_absolute or "=" in of_executor:
        raise UsageError(f"{name} {text}: expected two absolute paths, /data=/mnt/data")
    return os.path.normpath(of_driver), os.path.normpath(of_executor)


def duration_ms(name: str, text: str) -> int:
    """Return the milliseconds of a whole number of seconds, minutes, hours or days, like 7d.

    name: of the option, for the UsageError that any other text raises.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{name} {text}: expected a number with s, m, h or d behind it, like 7d")
    return int(found[1]) * _UNIT_MS[found[2]]


def size_bytes(name: str, text: str) -> int:
    """Read a whole number of bytes, or of kB, MB, GB or TB (powers of ten), like 500GB."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        problem = "expected a number of bytes, or with kB, MB, GB or TB behind it, like 500GB"
        raise UsageError(f"{name} {text}: {problem}")
    return int(found[1]) * _UNIT_BYTES[found[2].lower()]


def rate_bytes(name: str, text: str) -> int:
    """Read bytes a second, at least a million, in the units of a size: 200MB/s."""
    try:
        found = size_bytes(name, text.strip().removesuffix("/s"))
    except UsageError:
        found = 0
    if found < LEAST_RATE:
        raise UsageError(f"{name} {text}: expected 1MB/s or more, like 200MB/s")
    return found
