"""The page itself: the template, its style and script, and the rows of the table, in one text."""

import json
import os
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from compactor.host.printable import one_line, printable
from compactor.views.page.contents import (
    Row,
    charts_of,
    help_of,
    largest_of,
    rows_of,
    tiles_of,
    verdict_of,
)
from compactor.views.report_json import JsonObject

_HERE = os.path.dirname(os.path.abspath(__file__))
_FIELDS = (
    *("topic", "partition", "dir", "status", "code", "reason"),
    *("total", "clean", "dirty", "waiting", "active", "gain"),
)
# of a run: sizes after it, null where they are not known
_AFTER_FIELDS = ("after", "clean_after", "dirty_after", "waiting_after", "active_after")
# what ends a script, or a line of one, in a page; JSON knows their numbers
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def html_page(document: JsonObject) -> str:
    """The report of a run, dry or real, of a plan, or of any other command, as a page.

    It needs no other file and no network. Names are escaped; characters that do not print are
    shown as on a terminal.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    rows = rows_of(document)
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("report.html.j2").render(
        page=_page(document, rows),
        style=Markup(_text("page.css")),
        script=Markup(_text("page.js")),
        data=Markup(_json(_data(rows, document))),
    )


def _page(document: JsonObject, rows: Sequence[Row]) -> dict[str, Any]:
    verdict = verdict_of(document)
    dry = ", dry run" if document.get("dry_run") else ""
    forbidding = _forbidding(document)
    told = [
        *(f"A run would be refused: {why}" for why in document.get("refusals", ())),
        *(f"Warning: {warning}" for warning in document.get("warnings", ())),
        *document.get("notices", ()),
        *(f"Start no broker here before this is mended: {each}" for each in forbidding),
    ]
    return {
        "title": f"{document['command']}: {verdict.text}",
        "command": f"{document['command']}{dry}",
        "verdict": verdict.text,
        "mood": verdict.mood,
        "lines": _lines(document),
        "tiles": tiles_of(document, rows),
        "told": [one_line(line) for line in told],
        "charts": charts_of(document, rows),
        "largest": largest_of(rows),
        "is_run": document["command"] == "run",
        "helps": help_of(rows, not forbidding),
        "has_logs": bool(rows),
        "facts": _facts(document),
    }


def _forbidding(document: JsonObject) -> list[str]:
    """What a broker's start would not do well with."""
    return [
        f"{each['path']}: {each['problem']}; {each['consequence']}. {each['repair']} "
        f"{each['command'] or ''}"
        for each in document.get("start_problems", ())
        if each["forbids_start"]
    ]


def _lines(document: JsonObject) -> list[str]:
    """Below the verdict: where, and whether anything was changed."""
    changed = "Log directories were changed." if document.get("changed") else "Nothing was changed."
    log_dirs = ", ".join(printable(log_dir["path"]) for log_dir in document.get("log_dirs", ()))
    kafka = dict.fromkeys(
        f"As Kafka {printable(use['release'])}: {printable(use['why'])}."
        for use in document.get("kafka", ())
    )
    return [line for line in (log_dirs, *kafka, changed) if line]


def _facts(document: JsonObject) -> list[dict[str, str]]:
    named = (
        *(("run", "run_id"), ("started", "started_at"), ("seconds", "seconds")),
        *(("as of", "as_of"), ("host", "host"), ("version", "version")),
        *(("ended", "status"), ("reason", "reason_code"), ("exit code", "exit_code")),
    )
    return [
        {"name": name, "value": printable(str(document[key]))}
        for name, key in named
        if document.get(key) is not None
    ]


def _data(rows: Sequence[Row], document: JsonObject) -> JsonObject:
    """Texts once each, and rows that say which: a page of 10,000 logs stays small."""
    is_run = document["command"] == "run"
    topics, dirs = _Texts(printable), _Texts(printable)
    statuses, codes, reasons = _Texts(printable), _Texts(printable), _Texts(one_line)
    lines = [
        [
            topics.number(row.topic),
            row.partition,
            dirs.number(row.log_dir),
            statuses.number(row.status),
            -1 if row.code is None else codes.number(row.code),
            -1 if row.reason is None else reasons.number(row.reason),
            *(row.total, row.clean, row.dirty, row.waiting, row.active, row.gain),
            *(_sizes_after(row) if is_run else ()),
        ]
        for row in rows
    ]
    done = "Would go" if document.get("dry_run") else "Freed"
    return {
        "gain": "Dirty to clean" if document["command"] == "plan" else done,
        "is_run": is_run,
        "fields": (*_FIELDS, *_AFTER_FIELDS) if is_run else _FIELDS,
        "topics": topics.shown(),
        "dirs": dirs.shown(),
        "statuses": statuses.shown(),
        "codes": codes.shown(),
        "reasons": reasons.shown(),
        "rows": lines,
    }


def _sizes_after(row: Row) -> tuple[int | None, ...]:
    if row.after is None:
        return (None,) * len(_AFTER_FIELDS)
    return row.after.total, *row.after


class _Texts:
    """Texts by the order in which they came."""

    def __init__(self, show: Callable[[str], str]) -> None:
        self._numbers: dict[str, int] = {}
        self._show = show

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def shown(self) -> list[str]:
        return [self._show(text) for text in self._numbers]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")).translate(_ESCAPES)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
