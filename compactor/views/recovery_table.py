"""What a recovery did, as a table for a person that never floods the terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, one_line, printable
from compactor.recovery.log_dir_recovery import LogDirRecovery, LogRecovery
from compactor.recovery.recovery_account import advice_of, what_was_done
from compactor.views.fitting_table import name_lines, whole_words

SHOWN_LOGS = 40


def recovery_view(recovered: Sequence[LogDirRecovery], width: int) -> RenderableType:
    """A line for each log that was not as a broker would leave it, the sum, what a run needs."""
    logs = [log for log_dir in recovered for log in log_dir.logs]
    partitions = sum(log_dir.partitions for log_dir in recovered)
    parts: list[RenderableType] = []
    if logs:
        # those that are not as they should be first
        first = sorted(logs, key=lambda log: log.problem is None)[:SHOWN_LOGS]
        parts += name_lines([_row(log) for log in first], width)
    if len(logs) > SHOWN_LOGS:
        parts.append(
            Text(f"… and {len(logs) - SHOWN_LOGS:,} more (all: --report FILE.json)", "dim")
        )
    set_aside = sum(log.problem is not None for log in logs)
    settled = f"{counted(partitions, 'partition')}: {len(logs) - set_aside:,} settled"
    others = f", {set_aside:,} set aside as they were" if set_aside else ""
    parts.append(Text(f"{settled}{others}, nothing to be done for the others."))
    for line in advice_of(recovered):
        parts += whole_words(printable(line), width)
    return Group(*parts)


def _row(log: LogRecovery) -> tuple[str, str]:
    outcome = f"set aside: {log.problem}" if log.problem else what_was_done(log)
    return printable(f"{log.topic}-{log.partition}"), one_line(outcome)
