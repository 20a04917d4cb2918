"""Commands with --log-format, with a plain help, with options given once.

Else the last of two would silently win: of two `--exclude` the topics of the first would be
compacted.
"""

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from compactor.command_line.every_command import log_format_option
from compactor.command_line.plain_words import take_plain_words
from compactor.host.shell_commands import Given, note_given

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # newer typers bring their own
_EXPRESSION = "; one expression can match several topics, like 'a|b'"
_HINTS = {"include": _EXPRESSION, "exclude": _EXPRESSION}


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
