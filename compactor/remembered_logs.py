"""The logs that earlier runs have set aside, for the length of one command."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from compactor import set_aside_memory
from compactor.round_report import LogReport
from storage.files.files import Files
from storage.files.local import LOCAL


class RememberedLogs:
    """What the log directories of a command remember.

    `problems` are those to plan by: by path of the partition directory, why a log that has not
    changed since is left alone. `warnings` are for the operator.
    """

    def __init__(self, log_dirs: Sequence[str], retry: bool = False, files: Files = LOCAL) -> None:
        self._memories = [set_aside_memory.read(log_dir, files) for log_dir in log_dirs]
        self.problems = {} if retry else set_aside_memory.known_problems(self._memories)
        self.warnings = [memory.problem for memory in self._memories if memory.problem is not None]

    def still_corrupt(self, not_cleaned: Sequence[LogReport]) -> Iterator[LogReport]:
        """The reports on logs that are left alone for what earlier runs have found."""
        for report in not_cleaned:
            path = os.path.join(report.log_dir, f"{report.topic}-{report.partition}")
            if path in self.problems and report.reason == self.problems[path]:
                yield replace(report, is_data_problem=True)

    def update(self, reports: Sequence[LogReport], now_ms: int) -> None:
        """Remember what a run has found. The caller holds the locks of the log directories."""
        for memory in self._memories:
            logs = set_aside_memory.after_run(memory, reports, self.problems, now_ms)
            failure = set_aside_memory.write(memory, logs)
            if failure is not None:
                self.warnings.append(failure)
