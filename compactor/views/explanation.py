"""Why one log is cleaned or not, as a table and as JSON."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from compactor.host.printable import counted, duration_text, iso_time, one_line, printable
from compactor.inspection.explain import OVERDUE, Explanation, NamedBound
from compactor.views.json_values import to_json
from compactor.views.log_drawing import LogDrawing
from compactor.views.next_steps import before_a_start
from compactor.views.report_json import JsonObject, retention_document


def explanation_view(found: Explanation) -> RenderableType:
    """The verdict and the remedy, the log drawn to scale, then a line for each bound."""
    table = Table(box=None, pad_edge=False)
    table.add_column("bound")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("set by", overflow="fold")
    for bound in found.bounds:
        name, value = _shown(bound)
        table.add_row(name, value, Text(one_line(bound.set_by)))
    gone = found.retention.deleted.segments
    lines = [f"Retention would delete {counted(gone, 'segment')} now"] if gone else []
    lines += [one_line(note) for note in (*found.notes, *found.notices)]
    parts: list[RenderableType] = [Text(one_line(found.verdict), "bold")]
    if found.remedy:
        parts.append(Text(f"What to do: {one_line(found.remedy.words)}"))
        parts += [
            Text(f"  {printable(command)}", no_wrap=True, overflow="ignore")
            for command in found.remedy.commands
        ]
    for line in before_a_start(found.start_problems):
        is_command = line.startswith(" ")
        parts.append(
            Text(printable(line), no_wrap=is_command, overflow="ignore" if is_command else "fold")
        )
    if found.sections:
        parts += [Text(), LogDrawing(found.sections, found.marks)]
    lines.insert(0, f"As of {iso_time(found.as_of_ms)}")
    parts += [Text(), table, Text()] if found.bounds else []
    return Group(*parts, *(Text(line) for line in lines))


def _shown(bound: NamedBound) -> tuple[str, str]:
    """Name and value for a person: lengths of time as such."""
    if bound.name == OVERDUE:
        assert isinstance(bound.value, int), bound
        return "past max.compaction.lag.ms", duration_text(bound.value) if bound.value else "no"
    return bound.name, "none" if bound.value is None else str(bound.value)


def explanation_document(found: Explanation) -> JsonObject:
    """The same as JSON, after the fields of the summary."""
    return {
        "log_dir": found.log_dir,
        "topic": found.topic,
        "partition": found.partition,
        "outcome": found.outcome,
        "verdict": found.verdict,
        "reason": found.reason,
        "log_reason_code": found.reason_code,
        "remedy": to_json(found.remedy),
        "sections": to_json(found.sections),
        "bounds": to_json(found.bounds),
        "retention": retention_document(found.retention),
        "notes": list(found.notes),
        "notices": list(found.notices),
        "start_problems": to_json(found.start_problems),
        "as_of_ms": found.as_of_ms,
        "as_of": iso_time(found.as_of_ms),
    }
