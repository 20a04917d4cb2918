"""Values in, values out: every command as a function. docs/api.md shows how they are used.

To import this package costs next to nothing: each name is fetched from its module when it is first
asked for, so that whoever plans loads no engine.
"""

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactor.api.as_of import as_of_ms as as_of_ms
    from compactor.api.changes import Event as Event
    from compactor.api.changes import OnProgress as OnProgress
    from compactor.api.changes import Progress as Progress
    from compactor.api.changes import what_was_changed as what_was_changed
    from compactor.api.checkups import doctor as doctor
    from compactor.api.configurations import configs as configs
    from compactor.api.dumps import DumpOptions as DumpOptions
    from compactor.api.dumps import dump as dump
    from compactor.api.dumps import dump_parts as dump_parts
    from compactor.api.dumps import why_no_row as why_no_row
    from compactor.api.explanations import explain as explain
    from compactor.api.inspections import InspectOptions as InspectOptions
    from compactor.api.inspections import inspect as inspect
    from compactor.api.log_changes import ChangeOptions as ChangeOptions
    from compactor.api.log_changes import log_abort as log_abort
    from compactor.api.log_changes import log_append as log_append
    from compactor.api.log_changes import log_delete_records as log_delete_records
    from compactor.api.log_changes import log_roll as log_roll
    from compactor.api.log_changes import log_truncate as log_truncate
    from compactor.api.log_looks import log_offsets as log_offsets
    from compactor.api.log_moves import log_move as log_move
    from compactor.api.log_reads import ReadOptions as ReadOptions
    from compactor.api.log_reads import log_follow as log_follow
    from compactor.api.log_reads import log_read as log_read
    from compactor.api.log_reads import log_to_parquet as log_to_parquet
    from compactor.api.managed_cleaning import Cleaner as Cleaner
    from compactor.api.metrics import metrics_of as metrics_of
    from compactor.api.plans import Plan as Plan
    from compactor.api.plans import plan as plan
    from compactor.api.record_lines import read_records as read_records
    from compactor.api.recoveries import recover as recover
    from compactor.api.report_merging import merge_reports as merge_reports
    from compactor.api.rules import Rules as Rules
    from compactor.api.rules import RunOptions as RunOptions
    from compactor.api.runs import run as run
    from compactor.api.starts import start_problems as start_problems
    from compactor.api.tables import to_arrow as to_arrow
    from compactor.api.tables import to_pandas as to_pandas
    from compactor.api.undoings import discard as discard
    from compactor.api.undoings import undo as undo
    from compactor.api.verifications import known_of_cleanings as known_of_cleanings
    from compactor.api.verifications import verify as verify
    from compactor.api.verifications import verify_against as verify_against
    from compactor.api.verifications import verify_manifest as verify_manifest
    from compactor.api.watches import conditions_of_plan as conditions_of_plan
    from compactor.api.watches import conditions_of_run as conditions_of_run
    from compactor.api.watches import met_by_plan as met_by_plan
    from compactor.api.watches import met_by_run as met_by_run
    from compactor.broker_start.values import StartOutcome as StartOutcome
    from compactor.broker_start.values import StartProblem as StartProblem
    from compactor.broker_start.values import forbid_start as forbid_start
    from compactor.diagnosis.checks import Check as Check
    from compactor.diagnosis.checks import Checkup as Checkup
    from compactor.diagnosis.checks import Grade as Grade
    from compactor.errors import CleaningFailedError as CleaningFailedError
    from compactor.errors import ConfigError as ConfigError
    from compactor.errors import CorruptLogError as CorruptLogError
    from compactor.errors import LockLostError as LockLostError
    from compactor.errors import RefusedError as RefusedError
    from compactor.exit_codes import UsageError as UsageError
    from compactor.inspection.explain import Explanation as Explanation
    from compactor.inspection.inspection import Inspection as Inspection
    from compactor.inspection.inspection import LogInspection as LogInspection
    from compactor.inspection.topic_settings import ConfigEntry as ConfigEntry
    from compactor.inspection.topic_settings import TopicConfiguration as TopicConfiguration
    from compactor.originals.undo import UndoReport as UndoReport
    from compactor.originals.undo import UndoStatus as UndoStatus
    from compactor.planning.order import Order as Order
    from compactor.planning.round_plan import RoundPlan as RoundPlan
    from compactor.preconditions import Obstacle as Obstacle
    from compactor.preconditions import RunEnding as RunEnding
    from compactor.recovery.log_dir_recovery import LogDirRecovery as LogDirRecovery
    from compactor.recovery.log_dir_recovery import LogRecovery as LogRecovery
    from compactor.recovery.recovery_account import problems_of as problems_of
    from compactor.round_report import CleaningReport as CleaningReport
    from compactor.round_report import CopyReport as CopyReport
    from compactor.round_report import LogReport as LogReport
    from compactor.round_report import LogStatus as LogStatus
    from compactor.stopped_log.changes import Outcome as Outcome
    from compactor.stopped_log.log_offsets import LogOffsets as LogOffsets
    from compactor.stopped_log.new_record import NewRecord as NewRecord
    from compactor.stopped_log.wanted_records import Isolation as Isolation
    from compactor.stopped_log.wanted_records import ReadRecord as ReadRecord
    from compactor.verification.cleaning_clock import CleaningClock as CleaningClock
    from compactor.verification.run_reports import read_run_report as read_run_report
    from compactor.verification.verify import Verification as Verification
    from compactor.verification.verify_against import Comparison as Comparison
    from compactor.verification.verify_batches import Finding as Finding
    from compactor.watching.conditions import Condition as Condition
    from compactor.watching.conditions import Met as Met
    from storage.errors import CorruptFileError as CorruptFileError
    from storage.errors import LogCompactionError as LogCompactionError
    from storage.errors import UnsupportedBackendError as UnsupportedBackendError
    from storage.errors import UnsupportedFormatError as UnsupportedFormatError

_NAMES = {
    "compactor.api.as_of": "as_of_ms",
    "compactor.api.changes": "Event OnProgress Progress what_was_changed",
    "compactor.api.checkups": "doctor",
    "compactor.api.configurations": "configs",
    "compactor.api.dumps": "DumpOptions dump dump_parts why_no_row",
    "compactor.api.explanations": "explain",
    "compactor.api.inspections": "InspectOptions inspect",
    "compactor.api.log_changes": "ChangeOptions log_abort log_append log_delete_records log_roll "
    "log_truncate",
    "compactor.api.log_looks": "log_offsets",
    "compactor.api.log_moves": "log_move",
    "compactor.api.log_reads": "ReadOptions log_follow log_read log_to_parquet",
    "compactor.api.managed_cleaning": "Cleaner",
    "compactor.api.metrics": "metrics_of",
    "compactor.api.plans": "Plan plan",
    "compactor.api.record_lines": "read_records",
    "compactor.api.recoveries": "recover",
    "compactor.api.report_merging": "merge_reports",
    "compactor.api.rules": "Rules RunOptions",
    "compactor.api.runs": "run",
    "compactor.api.starts": "start_problems",
    "compactor.api.tables": "to_arrow to_pandas",
    "compactor.api.undoings": "discard undo",
    "compactor.api.verifications": "known_of_cleanings verify verify_against verify_manifest",
    "compactor.api.watches": "conditions_of_plan conditions_of_run met_by_plan met_by_run",
    "compactor.broker_start.values": "StartOutcome StartProblem forbid_start",
    "compactor.diagnosis.checks": "Check Checkup Grade",
    "compactor.errors": "CleaningFailedError ConfigError CorruptLogError LockLostError "
    "RefusedError",
    "compactor.exit_codes": "UsageError",
    "compactor.inspection.explain": "Explanation",
    "compactor.inspection.inspection": "Inspection LogInspection",
    "compactor.inspection.topic_settings": "ConfigEntry TopicConfiguration",
    "compactor.originals.undo": "UndoReport UndoStatus",
    "compactor.planning.order": "Order",
    "compactor.planning.round_plan": "RoundPlan",
    "compactor.preconditions": "Obstacle RunEnding",
    "compactor.recovery.log_dir_recovery": "LogDirRecovery LogRecovery",
    "compactor.recovery.recovery_account": "problems_of",
    "compactor.round_report": "CleaningReport CopyReport LogReport LogStatus",
    "compactor.stopped_log.new_record": "NewRecord",
    "compactor.stopped_log.changes": "Outcome",
    "compactor.stopped_log.log_offsets": "LogOffsets",
    "compactor.stopped_log.wanted_records": "Isolation ReadRecord",
    "compactor.verification.cleaning_clock": "CleaningClock",
    "compactor.verification.run_reports": "read_run_report",
    "compactor.verification.verify": "Verification",
    "compactor.verification.verify_against": "Comparison",
    "compactor.verification.verify_batches": "Finding",
    "compactor.watching.conditions": "Condition Met",
    "storage.errors": "CorruptFileError LogCompactionError UnsupportedBackendError "
    "UnsupportedFormatError",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    if isfunction(value):
        value = import_module("compactor.api.arguments").checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(_MODULES)
