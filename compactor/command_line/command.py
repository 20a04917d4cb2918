"""A command as a frozen dataclass: its fields are operands, options, or parts of other records.

A field is declared once. The parser, the help and the completion are made of these declarations
(`parser.py`, `help.py`); `make` fills a command with what somebody has typed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from compactor.errors import UsageError
from compactor.host.log_lines import LogFormat
from compactor.outcome.exit_codes import DONE, ExitStatus
from compactor.outcome.json_values import to_json
from compactor.settings.options import OUTPUT, Option, option, option_of, options_of
from compactor.settings.rules import option_names
from compactor.views.report_json import JsonObject, summary
from storage.errors import shown

if TYPE_CHECKING:
    from compactor.api import CleaningReport, RoundPlan

_OPERAND, _PART = "operand", "part"


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


class Result(NamedTuple):
    """The result of a command: everything it knows, and the summary alone."""

    document: JsonObject  # begins with the fields of the summary
    summary: JsonObject | None = None  # None: the document is short enough to be one
    measured: "RoundPlan | CleaningReport | None" = None  # what metrics are of, beside the ending
    whole: Callable[[], JsonObject] | None = (
        None  # makes the document of a report, where it is long
    )


def result_of(command: str, outcome: Any, ending: ExitStatus = DONE) -> Result:
    """Return the report and the summary of a command that came to its end."""
    begin = summary(command, ending.exit_code, reason_code=ending.reason_code)
    return Result(begin | to_json(outcome), begin | to_json(outcome, is_summary=True))


class Operand(NamedTuple):
    """An operand: a word after the command without dashes."""

    metavar: str
    help: str
    is_required: bool
    are_several: bool = False
    missing: str = ""  # what it is, where it is missing
    unless: str = ""  # the parameter with which it may be left out, if it has a default
    offered: Callable[[Sequence[str], str], list[str]] | None = None  # by a shell's completion

    @property
    def name(self) -> str:
        """The name in a message."""
        return self.metavar.partition(".")[0].rstrip("…")


class OptionsOfRecord(NamedTuple):
    """Fields of another record that a command takes, too."""

    record: type
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How a command shows what it has done."""

    report: tuple[str, ...] = option(
        (),
        "FILE",
        "Write the report to FILE.json, .html, .csv or .parquet, once each. "
        "{run_id} and {date} are filled in",
        OUTPUT,
        is_repeated=True,
    )
    metrics: str | None = option(
        None,
        "FILE",
        "Write metrics to FILE.prom, for Prometheus' node exporter, however the command ends",
        OUTPUT,
    )
    format: Format = option(
        Format.TABLE,
        "",
        "A table (if piped, with a JSON summary as last line), or one JSON object",
        OUTPUT,
        kind=Format,
    )
    quiet: bool = option(
        False, "", "Print nothing if all went well and there is no warning, for cron", OUTPUT
    )
    debug: bool = option(False, "", "Show tracebacks and Spark's own log", OUTPUT)
    log_format: LogFormat = option(  # read from the words before anything else, host/log_lines.py
        LogFormat.TEXT,
        "",
        "Progress on standard error: lines of text, or one JSON object a line",
        OUTPUT,
        kind=LogFormat,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The words of one command. The docstring of a command is its help."""

    NAME: ClassVar[str]

    def execute(self) -> Result | None:
        """Do what the command says; None: it was a stream of lines that needs no summary."""
        raise NotImplementedError


class Request(NamedTuple):
    """A command with its words: its own values are made when it is executed."""

    kind: type[Command]
    values: Mapping[str, Any]
    output: Output

    @property
    def command(self) -> str:
        """Its name."""
        return self.kind.NAME

    @property
    def names(self) -> dict[str, str]:
        """What the words of the command call the parameters of the API that they fill."""
        own = parameters_of(self.kind).items()
        return option_names() | {key.rpartition("__")[2]: each.name for key, each in own}

    def execute(self) -> Result | None:
        """Carry the command out."""
        return make(self.kind, self.values, self.output).execute()


def operand(metavar: str, help: str, *, default: Any = MISSING, **more: Any) -> Any:
    """Return a dataclass field that operands fill. With a default they may be left out.

    more: the other fields of `Operand`.
    """
    is_required = default is MISSING
    declared = Operand(metavar=metavar, help=help, is_required=is_required, **more)
    return field(metadata={_OPERAND: declared}, **({} if is_required else {"default": default}))


def part(record: type, *names: str) -> Any:
    """Declare a field that holds a record; the command offers these options of it."""
    return field(metadata={_PART: OptionsOfRecord(record, names)})


def output_part(*names: str) -> Any:
    """Return the field of `Output` of a command."""
    return part(Output, *names, "log_format")


def parameters_of(kind: type[Command]) -> dict[str, Operand | Option]:
    """Return all that a command takes, by the names that its parser gives them."""
    found: dict[str, Operand | Option] = {}
    for each in fields(kind):
        of_part: OptionsOfRecord | None = each.metadata.get(_PART)
        own = each.metadata.get(_OPERAND) or option_of(each)
        if of_part is not None:
            options = options_of(of_part.record)
            found |= {f"{each.name}__{name}": options[name] for name in of_part.names}
        elif own is not None:
            found[each.name] = own
    return found


def output_of(kind: type[Command], values: Mapping[str, Any]) -> Output:
    """Return how a command shows what it has done."""
    return cast(Output, _made(Output, "output__", parameters_of(kind), values))


def make(kind: type[Command], values: Mapping[str, Any], shown: Output) -> Command:
    """Return a command with its values. Raise UsageError for one that its option cannot have."""
    parameters = parameters_of(kind)
    parts: dict[str, Any] = {}
    for each in fields(kind):
        of_part: OptionsOfRecord | None = each.metadata.get(_PART)
        if of_part is not None:
            is_output = of_part.record is Output
            prefix = f"{each.name}__"
            parts[each.name] = (
                shown if is_output else _made(of_part.record, prefix, parameters, values)
            )
    own = {name: each for name, each in parameters.items() if "__" not in name}
    return cast(Command, _made(kind, "", own, values, parts))


def _made(
    record: type,
    prefix: str,
    parameters: Mapping[str, Operand | Option],
    values: Mapping[str, Any],
    parts: Mapping[str, Any] = {},
) -> Any:
    found = dict(parts)
    for name, declared in parameters.items():
        if name.startswith(prefix) and values.get(name) is not None:
            found[name.removeprefix(prefix)] = _value(declared, values[name])
    for each in fields(record):
        if each.name in found and each.default_factory is dict:
            found[each.name] = dict(found[each.name])
    return record(**found)


def _value(declared: Operand | Option, value: Any) -> Any:
    if isinstance(declared, Operand):
        return value
    read = declared.read or (lambda _, each: each)
    if declared.is_repeated:
        return tuple(read(declared.name, each) for each in value)
    found = read(declared.name, value)
    if isinstance(found, int) and found >= 2**63:
        raise UsageError("expected an integer of 64 bits", declared.name, shown(found))
    return found
