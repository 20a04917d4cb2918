"""Commands with --log-format, with a plain help, with options given once.

Of two values of one option the last would silently win: of two `--exclude` the topics of the first
would be compacted. --log-format is read from the words themselves before anything else
(`host/log_lines.py`), so that a usage error has that form, too; here the library learns of it, for
the help and to refuse other values. Values that are text are not given to the library's own checks,
which take a tenth of a second to load.
"""

import functools
from collections import Counter
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from compactor.command_line.options import OUTPUT
from compactor.host.log_lines import OPTION, LogFormat
from compactor.host.shell_commands import Given, note_given

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # newer typers bring their own
_EXPRESSION = "; one expression can match several topics, like 'a|b'"
_HINTS = {"include": _EXPRESSION, "exclude": _EXPRESSION}
_NO_SUCH_THING = object()


class Commands(TyperGroup):
    """A group of commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "help": _in_paragraphs(settings.get("help"))})

    def get_params(self, ctx: Any) -> list[Any]:
        return take_plain_words(_with_plain_types(super().get_params(ctx)))


class GivenOnce(TyperCommand):
    """Raises a usage error for the first option that is given more often than it may be."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "help": _in_paragraphs(settings.get("help"))})

    def get_params(self, ctx: Any) -> list[Any]:
        *own, help_option = super().get_params(ctx)
        return take_plain_words(_with_plain_types([*own, log_format_option(), help_option]))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, in_order = self.make_parser(ctx).parse_args(list(args))
        for parameter, times in Counter(in_order).items():
            option: Any = parameter  # of an argument there is only one
            if times > 1 and not (option.multiple or option.is_flag):
                hint = _HINTS.get(parameter.name or "", "")
                raise _UsageError(
                    f"{parameter.opts[0]}: is given {times} times; it may be given once{hint}"
                )
        note_given(Given(_options(in_order, values), lambda name: _taken_by(ctx, name)))
        return super().parse_args(ctx, args)


def _options(in_order: list[Any], values: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Each option as often as it is given, with its value as it was typed."""
    found: list[tuple[str, str | None]] = []
    for parameter in dict.fromkeys(in_order):
        if parameter.param_type_name == "option":
            name, value = parameter.opts[0], values[parameter.name]
            typed = [None] if parameter.is_flag else value if parameter.multiple else [value]
            found += [(name, each) for each in typed]
    return tuple(found)


def _taken_by(ctx: Any, name: str) -> frozenset[str]:
    """The options of a command, of which there may be groups: `log roll`."""
    command = ctx.find_root().command
    for word in name.split():
        command = command.commands[word]
    return frozenset(option for parameter in command.params for option in parameter.opts)


def _in_paragraphs(text: str | None) -> str | None:
    """Without the line breaks of the docstring, which typer keeps: the terminal breaks lines."""
    if text is None:
        return None
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _with_plain_types(parameters: list[Any]) -> list[Any]:
    """Without names of types of Python, which typer shows: `<bool>` of a flag, `<list[str]>`."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> None:
    """The name of an argument, and its help, say what it takes."""


@functools.cache
def log_format_option() -> Any:
    """As the library has it: its own way to make one differs from version to version."""
    app = typer.Typer(add_completion=False)
    app.command()(_any_command)
    command: Any = typer.main.get_command(app)
    return command.params[0]


def _any_command(
    log_format: Annotated[
        LogFormat,
        typer.Option(
            OPTION,
            rich_help_panel=OUTPUT,
            expose_value=False,
            help="Progress on standard error: lines of text, or one JSON object a line",
        ),
    ] = LogFormat.TEXT,
) -> None: ...


def take_plain_words(parameters: list[Any]) -> list[Any]:
    """Let parameters take such values as they are; any other, and in another typer, as ever."""
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", _NO_SUCH_THING) is None:  # typer makes it when used
            parameter._runtime_param = _PlainFirst()
    return parameters


class _PlainFirst:
    """Stands in for what typer makes to check a parameter's value."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value for the command. Raise a usage error for one that it cannot be."""
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        descriptor = param.type_descriptor
        if descriptor.parameter_info.parser is None:
            if type(value) is descriptor.annotation:
                return value
            if is_list and get_args(descriptor.annotation) == (str,) and _are_text(value):
                return list(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _are_text(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
