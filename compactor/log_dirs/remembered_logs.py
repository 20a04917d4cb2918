"""What earlier runs have set aside, and found wrong with sources, for the length of one command."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from compactor.host.printable import iso_time
from compactor.log_dirs import set_aside_memory
from compactor.log_dirs.set_aside_memory import Contents, is_well
from compactor.outcome.round_report import LogReport
from storage.files.files import Files
from storage.files.local import LOCAL


class RememberedLogs:
    """What the log directories of a command remember.

    `problems` are those to plan by: by path of the partition directory, why a log that has not
    changed since is left alone. `warnings` are for the operator, and so are `notes`: warnings that
    earlier runs have given.
    """

    def __init__(self, log_dirs: Sequence[str], retry: bool = False, files: Files = LOCAL) -> None:
        self._memories = [set_aside_memory.read(log_dir, files) for log_dir in log_dirs]
        self.problems = {} if retry else set_aside_memory.known_problems(self._memories)
        self.warnings = [memory.problem for memory in self._memories if memory.problem is not None]

    def lasting(self, conditions: Mapping[str, str]) -> dict[str, str]:
        """Give notes for those of these warnings that earlier runs have given, by warning.

        conditions: what each warning is about, in words that stay while it lasts.
        """
        known = [memory.contents.conditions for memory in self._memories]
        found = {}
        for warning, condition in conditions.items():
            since = [each[condition] for each in known if condition in each]
            if known and len(since) == len(known):
                found[warning] = f"Since {iso_time(min(since))}: {warning}"
        return found

    def well_again(self, reports: Sequence[LogReport], conditions: Sequence[str]) -> Iterator[str]:
        """Yield a note for each log and condition of earlier runs that has passed."""
        passed = {
            text: since_ms
            for memory in self._memories
            for text, since_ms in memory.contents.conditions.items()
            if text not in conditions
        }
        for text, since_ms in passed.items():
            yield f"No longer so, as it was since {iso_time(since_ms)}: {text}"
        waiting = {
            (memory.log_dir, *key): held
            for memory in self._memories
            for key, held in memory.contents.waiting.items()
        }
        for report in reports:
            held = waiting.get((report.log_dir, report.topic, report.partition))
            if held is not None and is_well(report):
                yield (
                    f"{report.topic}-{report.partition} is well again: it was set aside since "
                    f"{iso_time(held.since_ms)} ({held.code})"
                )

    def still_corrupt(self, not_cleaned: Sequence[LogReport]) -> Iterator[LogReport]:
        """The reports on logs that are left alone for what earlier runs have found."""
        for report in not_cleaned:
            path = os.path.join(report.log_dir, f"{report.topic}-{report.partition}")
            if path in self.problems and report.reason == self.problems[path]:
                yield replace(report, is_data_problem=True)

    def update(
        self, reports: Sequence[LogReport], now_ms: int, conditions: Sequence[str] = ()
    ) -> None:
        """Remember what a run has found. The caller holds the locks of the log directories."""
        for memory in self._memories:
            contents = Contents(
                set_aside_memory.after_run(memory, reports, self.problems, now_ms),
                set_aside_memory.conditions_after(memory, conditions, now_ms),
                set_aside_memory.waiting_after(memory, reports, now_ms),
            )
            failure = set_aside_memory.write(memory, contents)
            if failure is not None:
                self.warnings.append(failure)
