"""What to do after a run: the lines that end its report, where there is something to be done."""

from collections.abc import Sequence

from compactor.host.printable import counted, shell_word
from compactor.round_report import CleaningReport, LogReport, LogStatus

_REWRITTEN = (LogStatus.CLEANED, LogStatus.WOULD_CLEAN)


def next_steps(report: CleaningReport) -> list[str]:
    """Sentences; a command stands on a line of its own, behind blanks."""
    lines = _of_logs(report.logs)
    done = [log for log in report.logs if log.status in _REWRITTEN]
    if report.dry_run and done:
        where = "" if report.copies else " Stop the broker first."
        lines.append(f"Next: the same command without --dry-run does it.{where}")
    elif done and not report.copies:  # what becomes of copies is said with them
        log_dirs = dict.fromkeys(log.log_dir for log in done)
        lines.append("Next: start the broker. This checks every file first, if you like:")
        lines += [f"  compactor verify {shell_word(log_dir)}" for log_dir in log_dirs]
    return lines


def _of_logs(logs: Sequence[LogReport]) -> list[str]:
    lines = []
    failed = [log for log in logs if log.status is LogStatus.FAILED]
    if failed:
        them = "it" if len(failed) == 1 else "them"
        lines.append(
            f"{counted(len(failed), 'log')} failed for a reason that is not in its data: see "
            f"above; once that is set right, another run takes {them}."
        )
    damaged = [log for log in logs if log.status is LogStatus.SET_ASIDE and log.is_data_problem]
    if damaged:
        first = damaged[0]
        name = shell_word(f"{first.topic}-{first.partition}")
        lines += [
            f"{counted(len(damaged), 'log')} set aside for damage. This says what is wrong:",
            f"  compactor verify {shell_word(first.log_dir)} {name}",
        ]
    return lines
