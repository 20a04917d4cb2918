"""`report`: reports of several hosts made one."""

from collections.abc import Sequence

from compactor.outcome.exit_codes import UsageError
from compactor.watching import merged_reports
from compactor.watching.merged_reports import MergedReports
from storage.files.local import LOCAL


def merge_reports(paths: Sequence[str]) -> MergedReports:
    """Read reports (JSON) and add them up; the worst ending is that of all.

    Raise UsageError without a path and for a path of no file, ConfigError for a file that is no
    report, and OSError for one that cannot be read.
    """
    if not paths:
        raise UsageError("paths: expected one report at least")
    for path in paths:
        if not LOCAL.exists(path):
            raise UsageError(f"{path or repr(path)}: there is no such file")
        if LOCAL.is_directory(path):
            raise UsageError(f"{path}: is a directory")
    return merged_reports.merged_reports(paths, LOCAL)
