"""Why one log is cleaned or not, as a table and as JSON."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from compactor.host.printable import iso_time, one_line, printable
from compactor.inspect.explain import Explanation
from compactor.views.report_json import JsonObject, retention_document


def explanation_view(found: Explanation) -> RenderableType:
    """The outcome, then a line for each bound."""
    name = printable(f"{found.topic}-{found.partition}")
    reason = f": {one_line(found.reason)}" if found.reason else ""
    table = Table(box=None, pad_edge=False)
    table.add_column("bound")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("set by", overflow="fold")
    for bound in found.bounds:
        value = "none" if bound.value is None else str(bound.value)
        table.add_row(bound.name, value, Text(one_line(bound.set_by)))
    gone = found.retention.deleted.segments
    lines = [f"Retention would delete {gone:,} segments now"] if gone else []
    lines += [one_line(note) for note in (*found.notes, *found.notices)]
    parts: list[RenderableType] = [Text(f"{name} {found.outcome}{reason}")]
    lines.insert(0, f"As of {iso_time(found.as_of_ms)}")
    parts += [table] if found.bounds else []
    return Group(*parts, *(Text(line) for line in lines))


def explanation_document(found: Explanation) -> JsonObject:
    """The same as JSON, after the fields of the summary."""
    return {
        "log_dir": found.log_dir,
        "topic": found.topic,
        "partition": found.partition,
        "outcome": found.outcome,
        "reason": found.reason,
        "bounds": [bound._asdict() for bound in found.bounds],
        "retention": retention_document(found.retention),
        "notes": list(found.notes),
        "notices": list(found.notices),
        "as_of_ms": found.as_of_ms,
        "as_of": iso_time(found.as_of_ms),
    }
