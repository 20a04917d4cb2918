"""The rows of `--report x.csv` and `x.parquet`: which parts of a document they are, their columns.

A document without rows still has the columns that the type of its rows declares.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import EnumType
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from compactor.diagnosis.checks import Check
from compactor.inspection.explain import Explanation
from compactor.inspection.inspection import LogInspection
from compactor.originals.undo import UndoReport
from compactor.outcome.json_values import names_of
from compactor.outcome.round_report import LogReport
from compactor.outcome.row_tables import column_name
from compactor.recovery.log_dir_recovery import LogRecovery
from compactor.views.configs_table import TopicSettingsDocument
from compactor.views.plan_json import LogNotTakenDocument
from compactor.views.report_json import JsonObject
from compactor.views.verification_report import FindingDocument
from compactor.watching.merged_reports import OneReport

_ROW_TYPES: Mapping[str, type] = {  # every command with --report
    "run": LogReport,
    "plan": LogNotTakenDocument,  # which has all columns of PlanLogDocument, too
    "recover": LogRecovery,
    "undo": UndoReport,
    "verify": FindingDocument,
    "explain": Explanation,
    "configs": TopicSettingsDocument,
    "inspect": LogInspection,
    "doctor": Check,
    "report": OneReport,
}
_PARTS = {"plan": ("logs", "not_taken"), "verify": ("findings",), "configs": ("topics",)} | {
    "report": ("reports",)
}
_COMMAND = ("run_id", "command", "as_of")
_WITH_DRY_RUN = ("run", "undo")  # a log that was undone, or would be, has one status


def rows_of(document: JsonObject) -> list[Mapping[str, object]]:
    """Return a row for each log, finding, check, report or topic, with what names the command."""
    names = _of_command(document["command"])
    command = {name: document[name] for name in names if name in document}
    return [command | _without_objects(row) for row in _rows(document)]


def columns_of(command: str) -> list[str]:
    """Return the columns that the type of a command's rows declares, names within names joined."""
    columns = [*_of_command(command), *(("log_dir",) if command == "doctor" else ())]
    columns += _columns(_ROW_TYPES[command]) if command in _ROW_TYPES else ()
    return list(dict.fromkeys(columns))


def _of_command(command: str) -> tuple[str, ...]:
    return (*_COMMAND, "dry_run") if command in _WITH_DRY_RUN else _COMMAND


def _rows(document: JsonObject) -> Iterator[JsonObject]:
    command = document["command"]
    if command == "explain":
        if "outcome" in document:  # it came to its end
            row = {name: document[name] for name, _ in names_of(Explanation) if name in document}
            yield row | {"start_problems": row.pop("start_problems")}  # which comes last
        return
    if command == "doctor":
        yield from ({"log_dir": None, **check} for check in document.get("machine", ()))
        for log_dir in document.get("log_dirs", ()):
            for check in log_dir.get("checks", ()):
                yield {"log_dir": log_dir["path"], **check}
        yield from ({"log_dir": None, **check} for check in document.get("run", ()))
        return
    for part in _PARTS.get(command, ("logs",)):
        yield from document.get(part, ())


def _without_objects(row: JsonObject) -> JsonObject:
    """Leave out lists of objects, which are no columns."""
    return {
        name: value
        for name, value in row.items()
        if not (isinstance(value, list) and value and isinstance(value[0], dict))
    }


def _columns(type_: Any, of: str = "") -> Iterator[str]:
    for name, hint in names_of(type_):
        yield from _columns_of_value(column_name(name, of), hint)


def _columns_of_value(name: str, hint: Any) -> Iterator[str]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        yield from _columns_of_value(name, arguments[0])
    elif origin in (list, tuple, Sequence):
        if not _is_object(arguments[0]):
            yield name
    elif _is_object(hint):
        yield from _columns(hint, name)
    elif origin is not dict and hint is not dict:  # the names in a dict are not known before
        yield name


def _is_object(hint: Any) -> bool:
    if get_origin(hint) is Literal or isinstance(hint, EnumType):
        return False
    return dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")
