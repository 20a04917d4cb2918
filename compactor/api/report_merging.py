"""`report`: reports of several hosts made one."""

from collections.abc import Sequence

from compactor.watching import merged_reports
from compactor.watching.merged_reports import MergedReports
from storage.files.local import LOCAL


def merge_reports(paths: Sequence[str]) -> MergedReports:
    """Read reports (JSON) and add them up; the worst ending is that of all.

    Raise ConfigError for a file that is no report, OSError for one that cannot be read.
    """
    return merged_reports.merged_reports(paths, LOCAL)
