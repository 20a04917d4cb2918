"""What a recovery did, as JSON."""

from collections.abc import Sequence

from compactor.recovery.log_dir_recovery import LogDirRecovery, LogRecovery
from compactor.recovery.recovery_account import advice_of
from compactor.views.report_json import JsonObject


def recovery_document(recovered: Sequence[LogDirRecovery]) -> JsonObject:
    """The fields that follow those of the summary: totals first."""
    logs = [log for log_dir in recovered for log in log_dir.logs]
    return {
        "totals": {
            "partitions": sum(log_dir.partitions for log_dir in recovered),
            "recovered": sum(log.problem is None for log in logs),
            "set_aside": sum(log.problem is not None for log in logs),
            "finished": sum(len(log.finished) for log in logs),
            "undone": sum(len(log.undone) for log in logs),
            "removed": sum(len(log.removed) for log in logs)
            + sum(len(log_dir.removed) for log_dir in recovered),
            "rebuilt": sum(len(log.rebuilt) for log in logs),
            "truncated": sum(log.truncated is not None for log in logs),
        },
        "log_dirs": [
            {
                "path": log_dir.path,
                "clean_shutdown": log_dir.has_clean_shutdown,
                "removed": list(log_dir.removed),
            }
            for log_dir in recovered
        ],
        "notices": advice_of(recovered),
        "logs": [_document(log) for log in logs],
    }


def _document(log: LogRecovery) -> JsonObject:
    return {
        "log_dir": log.log_dir,
        "topic": log.topic,
        "partition": log.partition,
        "finished": list(log.finished),
        "undone": list(log.undone),
        "removed": list(log.removed),
        "rebuilt": list(log.rebuilt),
        "truncated": log.truncated,
        "problem": log.problem,
        "reason_code": log.reason_code,
    }
