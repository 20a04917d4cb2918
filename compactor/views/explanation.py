"""The view of `explain`: why one log is cleaned or not, as a drawing, a table and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from compactor.host.printable import (
    counted,
    duration_text,
    iso_time,
    one_line,
    size_text,
)
from compactor.inspection.explain import (
    OVERDUE,
    Explanation,
    Mark,
    NamedBound,
    Section,
    SectionName,
)
from compactor.views.fitting_table import text_of_line
from compactor.views.next_steps import before_a_start


def explanation_view(explanation: Explanation) -> RenderableType:
    """Return the verdict and the remedy, the log drawn to scale, then a line for each bound."""
    table = Table(box=None, pad_edge=False)
    table.add_column("bound")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("set by", overflow="fold")
    for bound in explanation.bounds:
        name, value = _shown(bound)
        table.add_row(name, value, Text(one_line(bound.set_by)))
    gone = explanation.retention.deleted.segments
    lines = [f"Retention would delete {counted(gone, 'segment')} now"] if gone else []
    lines += [one_line(note) for note in (*explanation.notes, *explanation.notices)]
    parts: list[RenderableType] = [Text(one_line(explanation.verdict), "bold")]
    if explanation.remedy:
        parts.append(Text(f"What to do: {one_line(explanation.remedy.words)}"))
        parts += [text_of_line(f"  {command}") for command in explanation.remedy.commands]
    parts += [text_of_line(line) for line in before_a_start(explanation.start_problems)]
    if explanation.sections:
        parts += [Text(), LogDrawing(explanation.sections, explanation.marks)]
    lines.insert(0, f"As of {iso_time(explanation.as_of_ms)}")
    parts += [Text(), table, Text()] if explanation.bounds else []
    return Group(*parts, *(Text(line) for line in lines))


def _shown(bound: NamedBound) -> tuple[str, str]:
    """Return name and value for a person: lengths of time as such."""
    if bound.name == OVERDUE:
        assert isinstance(bound.value, int), bound
        return "past max.compaction.lag.ms", duration_text(bound.value) if bound.value else "no"
    return bound.name, "none" if bound.value is None else str(bound.value)


WIDEST = 100  # columns; a wider bar says no more
_MEANING: Mapping[str, str] = {
    SectionName.CLEAN: "clean",
    SectionName.DIRTY: "dirty",
    SectionName.WAITING: "dirty, has to wait",
    SectionName.ACTIVE: "active segment",
}
_FILLS: Mapping[str, str] = {
    SectionName.CLEAN: "░",
    SectionName.DIRTY: "█",
    SectionName.WAITING: "▒",
    SectionName.ACTIVE: "·",
}
_ASCII_FILLS: Mapping[str, str] = {
    SectionName.CLEAN: "-",
    SectionName.DIRTY: "#",
    SectionName.WAITING: "x",
    SectionName.ACTIVE: ".",
}


@dataclass(frozen=True, slots=True)
class LogDrawing:
    """The parts of a log, one after the other, and its marks; for a console of any width."""

    sections: Sequence[Section]
    marks: Sequence[Mark]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it as wide as the console, in the characters that it has."""
        width = min(options.max_width, WIDEST)
        for line in drawing(self.sections, self.marks, width, options.ascii_only):
            yield Text(line, no_wrap=True)


def drawing(
    sections: Sequence[Section], marks: Sequence[Mark], width: int, in_ascii: bool = False
) -> list[str]:
    """Return the lines: the bar, a line for each place with a mark, and what the parts are.

    marks: those at one place share a line. width: columns, at least 40.
    """
    fills = _ASCII_FILLS if in_ascii else _FILLS
    columns = _columns([section.size_bytes for section in sections], width)
    bar = "".join(
        fills[section.name] * count for section, count in zip(sections, columns, strict=True)
    )
    scale = _Scale(sections, columns)
    places: dict[int, list[Mark]] = {}
    for mark in marks:
        places.setdefault(min(scale.column(mark.position), width - 1), []).append(mark)
    key = "   ".join(
        f"{fills[section.name]} {_MEANING[section.name]} {size_text(section.size_bytes)}"
        for section in sections
    )
    return [bar, *_labels(places, width, in_ascii), key]


def _columns(sizes: Sequence[int], width: int) -> list[int]:
    """Share width columns out by size, at least one to each."""
    total = sum(sizes) or 1
    columns = [max(1, round(size * width / total)) for size in sizes]
    while columns and sum(columns) != width:  # by what was rounded
        largest = columns.index(max(columns))
        columns[largest] += 1 if sum(columns) < width else -1
    return columns


class _Scale:
    """Converts bytes below an offset to columns."""

    def __init__(self, sections: Sequence[Section], columns: Sequence[int]) -> None:
        self._parts = list(zip((section.size_bytes for section in sections), columns, strict=True))

    def column(self, position: int) -> int:
        start_column = 0
        for size, columns in self._parts:
            if position < size:
                return start_column + position * columns // size
            position -= size
            start_column += columns
        return start_column


def _labels(places: Mapping[int, Sequence[Mark]], width: int, in_ascii: bool) -> Iterator[str]:
    """Yield a line for each place, from the right to the left, so that none crosses another's."""
    bar, right, left = ("|", "`-", "-'") if in_ascii else ("│", "└", "┘")
    waiting = sorted(places)
    while waiting:
        column = waiting.pop()
        names = ", ".join(mark.name for mark in places[column])
        label = f"{places[column][0].offset} {names}"
        line = [" "] * width
        for other in waiting:
            line[other] = bar
        if column + len(right) + 1 + len(label) <= width:
            text, start = f"{right} {label}", column
        else:
            text = f"{label} {left}"
            start = max(column + 1 - len(text), 0)
        line[start : start + len(text)] = text
        yield "".join(line).rstrip()
