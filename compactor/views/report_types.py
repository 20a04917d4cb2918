"""The types of the documents that commands end with; the JSON Schema is made of these.

A value that is shown as it is has its own type. An object that exists in a document alone has a
type whose name ends with `Document`.

`report.schema.json` beside this module is what comes out; a test holds the two together, and
`python -m compactor.views.report_types` writes it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from compactor.diagnosis.checks import Checkup
from compactor.inspection.explain import Explanation, NamedBound
from compactor.inspection.inspection import Inspection
from compactor.offline_log.log_offsets import LogOffsets
from compactor.originals.undo import UndoReport
from compactor.outcome.json_values import IN_SUMMARY, Schema, written
from compactor.outcome.round_report import (
    REPORT_SCHEMA_VERSION,
    BatchCounts,
    CleaningReport,
    CopyReport,
    DroppedCounts,
    LogReport,
    OriginalsReport,
    PhaseReport,
    RecordCounts,
    RetentionCounts,
    RetentionReport,
    SegmentCounts,
)
from compactor.planning.expected import Expected
from compactor.planning.selection import Bound, BoundName, DirtyFrom
from compactor.recovery.log_dir_recovery import LogRecovery
from compactor.verification.verify_against import Compared
from compactor.views.configs_table import ConfigsDocument
from compactor.views.ending import EndingDocument
from compactor.views.merged_table import MergedReportsDocument
from compactor.views.one_log import LogChangeDocument
from compactor.views.plan_json import PlanDocument
from compactor.views.recovery_report import RecoveryDocument
from compactor.views.report_json import JsonObject, to_text
from compactor.views.undo_report import UndoDocument
from compactor.views.verification_report import VerificationDocument
from compactor.watching.conditions import Met
from storage.files.local import LOCAL

SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")
_FLAT_IN_SUMMARY = written(is_flat=True, is_in_summary=True)


@dataclass(frozen=True, slots=True)
class RunDocument:
    """A run that came to its end, dry or real, and the conditions of --fail-if that hold."""

    report: CleaningReport = field(metadata=_FLAT_IN_SUMMARY)
    conditions_met: Sequence[Met] = field(metadata=IN_SUMMARY)


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A plan, and the conditions of --fail-if that hold."""

    plan: PlanDocument = field(metadata=_FLAT_IN_SUMMARY)
    conditions_met: Sequence[Met] = field(metadata=IN_SUMMARY)


# what a type is called in the schema, where that is not its name
NAMES: dict[type, str] = {
    BatchCounts: "Batches",
    Bound: "OffsetBound",
    Compared: "ComparedPartition",
    CopyReport: "Copy",
    DroppedCounts: "Dropped",
    Expected: "PlanExpected",
    Inspection: "Inspections",
    LogReport: "RunLog",
    LogRecovery: "RecoveredLog",
    Met: "MetCondition",
    NamedBound: "Bound",
    OriginalsReport: "Originals",
    PhaseReport: "Phase",
    PlannedDocument: "Plan",
    RecordCounts: "Records",
    RetentionCounts: "Retention",
    RetentionReport: "LogRetention",
    SegmentCounts: "Segments",
    UndoReport: "UndoneLog",
}
_CHANGES = ("roll", "delete-records", "truncate", "append", "abort", "move")
# of a command that came to its end; an error has the fields of every ending alone
OF_COMMANDS = {
    "run": RunDocument,
    "plan": PlannedDocument,
    "recover": RecoveryDocument,
    "undo": UndoDocument,
    "verify": VerificationDocument,
    "explain": Explanation,
    "configs": ConfigsDocument,
    "inspect": Inspection,
    "doctor": Checkup,
    "report": MergedReportsDocument,
    "log offsets": LogOffsets,
    **dict.fromkeys((f"log {verb}" for verb in _CHANGES), LogChangeDocument),
}


def report_schema() -> JsonObject:
    """Return the schema, draft 2020-12. New fields may come: it forbids none."""
    partial = [CleaningReport, PlanDocument, *OF_COMMANDS.values()]
    schema = Schema(NAMES, partial, texts=(BoundName, DirtyFrom))
    ending = schema.of(EndingDocument)
    rest = [
        {
            "if": {
                "properties": {"command": {"const": command}, "error": False},
                "required": ["command"],
            },
            "then": schema.of(type_),
        }
        for command, type_ in OF_COMMANDS.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a command of log-compactor ends with",
        "version": REPORT_SCHEMA_VERSION,
        "allOf": [ending, *rest],
        "$defs": schema.parts,
    }


def write_schema() -> None:
    """Write the file again after a change of the types."""
    LOCAL.replace_file(SCHEMA_FILE, to_text(report_schema()).encode())


if __name__ == "__main__":
    write_schema()
