"""Shows the help of a command: usage, docstring, and a panel for each kind of option."""

from collections.abc import Iterable
from typing import NamedTuple

import click
from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from compactor.command_line.parser import OperandParameter, OptionParameter


class _Row(NamedTuple):
    panel: str
    help: str
    is_required: bool = False
    name: str = ""
    short: str = ""
    metavar: str = ""
    notes: tuple[str, ...] = ()


def show_help(ctx: click.Context) -> None:
    """Print the help of a command, as wide as the terminal."""
    command = ctx.command
    console = Console(highlight=False)
    pieces = " ".join(command.collect_usage_pieces(ctx))
    console.print(Padding(Text(f"Usage: {ctx.command_path} {pieces}", style="bold"), 1))
    console.print(Padding(Text.from_markup(_in_paragraphs(command.help or "")), (0, 1, 1, 1)))
    rows = [_row(each) for each in command.params]
    _print_panels(console, [row for row in rows if row.panel == "Arguments"])
    _print_panels(console, [row for row in rows if row.panel == "Options"])
    _print_panels(console, [row for row in rows if row.panel not in ("Arguments", "Options")])
    if isinstance(command, click.Group):
        _print_commands(console, command)
    if command.epilog:
        console.print(Padding(Text.from_markup(command.epilog), 1))


def summary_of(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    return _in_paragraphs(command.help or "").partition("\n\n")[0]


def _in_paragraphs(text: str) -> str:
    """Return a docstring without its line breaks: the terminal breaks lines."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n")).strip()


def _row(param: click.Parameter) -> _Row:
    if isinstance(param, OperandParameter):
        operand = param.declared
        notes = ("[required]",) if operand.is_required else ()
        return _Row(
            panel="Arguments",
            is_required=operand.is_required,
            short=operand.metavar,
            help=operand.help,
            notes=notes,
        )
    if isinstance(param, OptionParameter):
        option = param.declared
        limits = f" [{option.number.range}]" if option.number else ""
        shown = () if option.default is None else (f"[default: {option.default}]",)
        notes = (*shown, *(("[required]",) if option.is_required else ()))
        return _Row(
            panel=option.panel or "Options",
            is_required=option.is_required,
            name=option.name,
            metavar=option.metavar + limits,
            help=option.help,
            notes=notes,
        )
    assert isinstance(param, click.Option)
    long = [name for name in param.opts if name.startswith("--")]
    short = [name for name in param.opts if not name.startswith("--")]
    metavar = param.metavar or ""
    return _Row(
        panel="Options",
        name=",".join(long),
        short=",".join(short),
        metavar=metavar,
        help=param.help or "",
    )


def _print_panels(console: Console, rows: Iterable[_Row]) -> None:
    panels: dict[str, list[_Row]] = {}
    for row in rows:
        panels.setdefault(row.panel, []).append(row)
    for name, within in panels.items():
        table = Table(
            highlight=False, show_header=False, expand=True, box=None, pad_edge=False,
            padding=(0, 1),
        )  # fmt: skip
        for row in within:
            notes = [Text(note, style="dim") for note in row.notes]
            required = [Text("*" if row.is_required else "", style="red")]
            table.add_row(
                *(required if any(each.is_required for each in within) else ()),
                Text(row.name, style="bold cyan"),
                Text(row.short, style="bold green"),
                Text(row.metavar, style="bold yellow", overflow="fold"),
                Columns([Text(row.help), *notes]),
            )
        console.print(Panel(table, border_style="dim", title=name, title_align="left"))


def _print_commands(console: Console, command: click.Group) -> None:
    table = Table(
        highlight=False, show_header=False, expand=True, box=None, pad_edge=False, padding=(0, 1)
    )
    width = max(map(len, command.commands))
    table.add_column(style="bold cyan", no_wrap=True, width=width)
    table.add_column(ratio=10)
    for name, each in command.commands.items():
        table.add_row(Text(name), Text.from_markup(summary_of(each)))
    console.print(Panel(table, border_style="dim", title="Commands", title_align="left"))
