"""Tables and lists that fit a width: less important columns go first, and no name is broken."""

import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from compactor.host.printable import first_few, one_line, printable
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.reason_codes import ReasonCode
from compactor.views.report_totals import ReasonGroup, group_reasons

_GAP = "  "


class Column(NamedTuple):
    """A column beside the names, which are the first cell of each row."""

    heading: str
    rank: int  # those of the highest rank go first where the width is not enough
    is_text: bool = False  # words, which begin at its left, instead of numbers


def table_lines(
    names: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> list[Text]:
    """Return a table, a line a row, without empty columns. names: heading of the first cells.

    A name that leaves no room for its numbers has a line of its own, over them.
    """
    kept = [n for n in range(len(columns)) if any(row[n + 1] for row in rows)]
    widths = [
        max([len(column.heading), *(cell_len(row[number + 1]) for row in rows)])
        for number, column in enumerate(columns)
    ]
    longest = max([len(names), *(cell_len(row[0]) for row in rows)])

    def room() -> int:
        return width - sum(widths[number] + len(_GAP) for number in kept)

    usual = [cell_len(row[0]) for row in rows if cell_len(row[0]) <= width // 3]
    wanted = max([len(names), *usual])
    while len(kept) > 1 and room() < wanted:
        kept.remove(max(kept, key=lambda number: (columns[number].rank, number)))
    first = min(longest, max(room(), len(names)))

    def line(cells: Sequence[str]) -> str:
        numbers = [
            _GAP + _padded(cells[number + 1], widths[number], columns[number].is_text)
            for number in kept
        ]
        if cell_len(cells[0]) <= first:
            return f"{_padded(cells[0], first, is_text=True)}{''.join(numbers)}"
        return f"{cells[0]}\n{' ' * first}{''.join(numbers)}"

    heading = line([names, *(column.heading for column in columns)])
    return [_unbroken(heading.rstrip(), "bold"), *(_unbroken(line(row).rstrip()) for row in rows)]


def name_lines(rows: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Return a name and some words a row; a long name stands over its words."""
    usual = [cell_len(name) for name, _ in rows if cell_len(name) <= width // 3]
    first = max(usual, default=2)
    lines = []
    for name, words in rows:
        told = whole_words(words, width - first - len(_GAP))
        beside = name if cell_len(name) <= first else ""
        lines += [] if beside else [_unbroken(name)]
        for number, text in enumerate(told):
            before = _padded("" if number else beside, first, is_text=True)
            lines.append(_unbroken(f"{before}{_GAP}{text.plain}"))
    return lines


def whole_words(text: str, width: int, style: str = "") -> list[Text]:
    """Break text into lines; a word that is longer than a line has one, and is not broken."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [_unbroken(line, style) for line in lines]


def text_of_line(line: str) -> Text:
    """Return a line of text; a command, which begins with blanks, is never broken."""
    is_command = line.startswith(" ")
    return Text(printable(line), no_wrap=is_command, overflow="ignore" if is_command else "fold")


def _unbroken(line: str, style: str = "") -> Text:
    return Text(line, style, no_wrap=True, overflow="ignore")


def _padded(text: str, width: int, is_text: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return text + blanks if is_text else blanks + text


SHOWN_NAMES = 3


def reason_lines(
    logs: Sequence[LogReport],
    shown: int | None,
    width: int,
    rest: str,
    brief: Callable[[ReasonCode], str] = lambda _: "",
) -> list[Text]:
    """Return why logs are not cleaned: each reason once, those of most logs first.

    shown: how many of them; None: all. rest: where the others stand. brief: what helps, in few
    words.
    """
    groups = group_reasons(logs)
    counts = [f"{len(group.names):,}" for group in groups[:shown]]
    others = sum(len(group.names) for group in groups[len(counts) :])
    longest = max(map(len, [*counts, f"{others:,}" if others else ""]))
    lines: list[Text] = []
    for count, group in zip(counts, groups, strict=False):
        lines += _with_count(
            count.rjust(longest), _reason_group_lines(group, width - longest, brief)
        )
    if others:
        lines.append(Text(f"{others:>{longest},}{_GAP}for other reasons ({rest})", "dim"))
    return lines


def _reason_group_lines(
    group: ReasonGroup, width: int, brief: Callable[[ReasonCode], str]
) -> list[Text]:
    failed = group.status is LogStatus.FAILED
    reason = f"{'failed: ' if failed else ''}{one_line(group.reason)}"
    room = width - len(_GAP)
    lines = whole_words(reason, room, "red" if failed else "")
    lines += whole_words(first_few(group.names, SHOWN_NAMES), room, "dim")
    helps = brief(group.reason_code) if group.reason_code else ""
    return lines + whole_words(f"→ {helps}", room) if helps else lines


def _with_count(count: str, lines: Sequence[Text]) -> list[Text]:
    before = [f"{count}{_GAP}", *[" " * len(f"{count}{_GAP}")] * (len(lines) - 1)]
    told = [Text.assemble(blanks, line) for blanks, line in zip(before, lines, strict=True)]
    for text in told:
        text.no_wrap, text.overflow = True, "ignore"
    return told
