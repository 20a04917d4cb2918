"""Makes the parser of the commands that are declared; words in, a Request or a UsageError out.

All values are text for the library (click). The declarations decide what they may be, how often
each may be used, and what is said of a wrong one.
"""

from collections import UserDict
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from compactor.command_line.command import Command, Operand, Request, output_of, parameters_of
from compactor.command_line.shared_options import LOG_MISSING
from compactor.errors import UsageError
from compactor.host.shell_commands import TypedOptions, note_typed_options
from compactor.settings.options import Option

_EXPRESSION = "; one expression can match several topics, like 'a|b'"
_HINTS = {"--include": _EXPRESSION, "--exclude": _EXPRESSION}


class OptionParameter(click.Option):
    """An option for the library, with its declaration."""

    def __init__(self, name: str, declared: Option) -> None:
        is_flag = not declared.metavar
        takes: dict[str, Any] = {"is_flag": True} if is_flag else {"multiple": True, "type": str}
        super().__init__(
            [name, declared.name],
            metavar=declared.metavar or None,
            required=declared.is_required,
            **takes,
        )
        self.declared = declared

    def shell_complete(self, _: click.Context, incomplete: str) -> list[Any]:
        """Offer choices; files where an option has none."""
        choices = self.declared.choices
        if choices is None:
            return [_offered(incomplete, "file")]
        return [_offered(each) for each in choices if each.startswith(incomplete)]


class OperandParameter(click.Argument):
    """Operands for the library, with their declaration."""

    def __init__(self, name: str, declared: Operand) -> None:
        count = -1 if declared.are_several else 1
        super().__init__(
            [name], metavar=declared.metavar, nargs=count, required=declared.is_required, type=str
        )
        self.declared = declared

    def make_metavar(self, _: click.Context) -> str:
        """Return how the usage shows it: in brackets where it may be left out."""
        shown = self.declared.metavar
        if not self.declared.is_required:
            shown = f"[{shown}]"
        return f"{shown}..." if self.declared.are_several and "." not in shown else shown

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Offer what the declaration says; files where it says nothing."""
        if self.declared.offered is None:
            return [_offered(incomplete, "file")]
        return [_offered(each) for each in self.declared.offered(_typed(ctx), incomplete)]


class CommandParser(click.Command):
    """Parses the words of one command."""

    def __init__(self, name: str, kind: type[Command]) -> None:
        params: list[click.Parameter] = [
            OperandParameter(key, each) if isinstance(each, Operand) else OptionParameter(key, each)
            for key, each in parameters_of(kind).items()
        ]
        super().__init__(
            name,
            params=params,
            help=kind.__doc__,
            add_help_option=False,
            context_settings={"allow_extra_args": True},
        )
        self.params.append(_help_option())
        self.kind = kind

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse words. Raise UsageError for too many of them."""
        super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise click.UsageError(f"too many words: {' '.join(ctx.args)}", ctx)
        return ctx.args

    def invoke(self, ctx: click.Context) -> Request:
        """Return what is asked for."""
        given = [(key, each) for key, each in ctx.params.items() if each not in (None, (), False)]
        own: dict[str, Any] = parameters_of(self.kind)
        note_typed_options(TypedOptions(_as_typed(given, own), lambda name: _taken_by(ctx, name)))
        try:
            values = {key: _value(own[key], value) for key, value in given}
        except UsageError as error:
            raise click.UsageError(str(error), ctx) from error
        operands = [each for each in self.params if isinstance(each, OperandParameter)]
        for each in operands:
            unless = each.declared.unless
            if unless and each.name not in values and unless not in values:
                raise click.MissingParameter(ctx=ctx, param=each)
        return Request(self.kind, values, output_of(self.kind, values))


class CommandsByName(UserDict[str, Any]):
    """Commands of a group by name, each MODULE:CLASS until it is first asked for."""

    def __getitem__(self, name: str) -> Any:
        """Return the parser of a command."""
        found = super().__getitem__(name)
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            self[name] = found = CommandParser(name, getattr(import_module(module), kind))
        return found


class GroupParser(click.Group):
    """Parses the name of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse words. Raise UsageError without a word."""
        if not args and not ctx.resilient_parsing:
            raise click.UsageError("a command is missing", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names. Raise UsageError for another word."""
        name = args[0]
        if name not in self.commands and not ctx.resilient_parsing:
            similar = get_close_matches(name, self.commands)
            meant = f"; did you mean {' or '.join(similar)}?" if similar else ""
            kind = "option" if name.startswith("-") else "command"
            raise click.UsageError(f"No such {kind} {name!r}{meant}", ctx)
        return super().resolve_command(ctx, args)


def group(
    name: str,
    help: str,
    commands: CommandsByName,
    params: Sequence[click.Option] = (),
    epilog: str | None = None,
) -> GroupParser:
    """Return a parser of commands."""
    return GroupParser(
        name,
        commands,
        help=help,
        epilog=epilog,
        params=[*params, _help_option()],
        add_help_option=False,
        no_args_is_help=False,
    )


def parse(command: click.Command, words: Sequence[str]) -> Request | None:
    """Return what is asked for; None: a help or the version was shown."""
    try:
        with command.make_context("compactor", list(words)) as context:
            asked = command.invoke(context)
    except click.exceptions.Exit:
        return None
    assert isinstance(asked, Request), asked
    return asked


def usage_message(error: click.UsageError, words: Sequence[str] = ()) -> str:
    """Say what is wrong with the words."""
    match error:
        case click.NoSuchOption():
            similar = sorted(error.possibilities or ())
            meant = f"; did you mean {' or '.join(similar)}?" if similar else ""
            return f"No such option: {error.option_name}{meant}"
        case click.MissingParameter(param=OperandParameter() as param):
            operand = param.declared
            if error.ctx is not None and error.ctx.info_name == "explain" and "/" in words[-1]:
                return f"TOPIC-PARTITION is missing: {LOG_MISSING}"  # the one word is a directory
            return f"{operand.name} is missing: {operand.missing}"
        case click.MissingParameter(param=OptionParameter() as param):
            return f"{param.declared.name} is missing"
    return error.format_message()


def _value(declared: Operand | Option, value: Any) -> Any:
    if isinstance(declared, Operand) or not declared.metavar:
        return value
    read = tuple(declared.read_early(each) for each in value)
    if declared.is_repeated:
        return read
    times = len(read)
    if times > 1:
        hint = _HINTS.get(declared.name, "")
        raise UsageError(f"{declared.name}: is given {times} times; it may be given once{hint}")
    return read[0]


def _as_typed(
    given: Sequence[tuple[str, Any]], own: Mapping[str, Any]
) -> tuple[tuple[str, str | None], ...]:
    """Return each option as often as it was typed, with its value as typed."""
    found: list[tuple[str, str | None]] = []
    for key, value in given:
        declared = own[key]
        if isinstance(declared, Option):
            found += [(declared.name, each) for each in (value if declared.metavar else [None])]
    return tuple(found)


def _taken_by(ctx: click.Context, name: str) -> frozenset[str]:
    """Return the options of a command, also of one in a group: `log roll`."""
    command: Any = ctx.find_root().command
    for word in name.split():
        command = command.commands[word]
    return frozenset(option for parameter in command.params for option in parameter.opts)


def _typed(ctx: click.Context) -> list[str]:
    """Return the operands that stand before."""
    found: list[str] = []
    for value in ctx.params.values():
        found += value if isinstance(value, list | tuple) else [value]
    return [each for each in found if isinstance(each, str)]


def _offered(text: str, kind: str = "plain") -> Any:
    from click.shell_completion import CompletionItem  # needed by a shell alone

    return CompletionItem(text, kind)


def _help_option() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted and not ctx.resilient_parsing:
            from compactor.command_line.help import show_help  # loads what draws tables

            show_help(ctx)
            ctx.exit()

    return click.Option(
        ["--help", "-h"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show this message and exit.",
    )
