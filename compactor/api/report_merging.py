"""`report`: reports of several hosts made one."""

from collections.abc import Sequence

from compactor.exit_codes import UsageError
from compactor.watching import merged_reports
from compactor.watching.merged_reports import MergedReports
from storage.files.local import LOCAL


def merge_reports(paths: Sequence[str]) -> MergedReports:
    """Read reports (JSON) and add them up; the worst ending is that of all.

    Raise UsageError without a path, ConfigError for a file that is no report, and OSError for one
    that cannot be read.
    """
    if not paths:
        raise UsageError("paths: expected one report at least")
    return merged_reports.merged_reports(paths, LOCAL)
