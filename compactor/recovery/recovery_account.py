"""Say what a recovery did, for the run after it: by log, in words, in a round's report."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor.host.printable import counted
from compactor.log_dirs.log_dir_lock import UNTIL_A_CLEAN_SHUTDOWN
from compactor.outcome.round_report import CleaningReport
from compactor.recovery.log_dir_recovery import LogDirRecovery, LogRecovery
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN


def problems_of(recovered: Iterable[LogDirRecovery]) -> dict[str, str]:
    """By path of the partition directory: why a log could not be recovered."""
    return {
        log.path: log.problem
        for log_dir in recovered
        for log in log_dir.logs
        if log.problem is not None
    }


def what_was_done(log: LogRecovery) -> str:
    """In a few words, for a person."""
    counts = (
        (log.finished, "of a complete swap put in place"),
        (log.undone, "of an incomplete one removed"),
        (log.removed, "left over removed"),
        (log.rebuilt, "made anew"),
    )
    done = [f"{counted(len(names), 'file')} {what}" for names, what in counts if names]
    return ", ".join(done + ([f"cut off: {log.truncated}"] if log.truncated else []))


def advice_of(recovered: Iterable[LogDirRecovery]) -> list[str]:
    """What people have to judge, and what a run after this recovery needs: a line for each."""
    advice = []
    for log_dir in recovered:
        advice += [f"{log_dir.path}: {notice}." for notice in log_dir.notices]
        if not log_dir.has_clean_shutdown:
            advice.append(
                f"{log_dir.path}: no {CLEAN_SHUTDOWN}, and recover writes none: each run here "
                f"needs --recover-first {UNTIL_A_CLEAN_SHUTDOWN}."
            )
    return advice


def with_recovery_noted(
    report: CleaningReport, recovered: Sequence[LogDirRecovery]
) -> CleaningReport:
    """Note on each log what was settled before the round, and what the next run needs."""
    notes = {
        (log.log_dir, log.topic, log.partition): f"recovered first: {what_was_done(log)}"
        for log_dir in recovered
        for log in log_dir.logs
        if log.problem is None
    }
    logs = (
        replace(log, notes=(notes[key], *log.notes))
        if (key := (log.log_dir, log.topic, log.partition)) in notes
        else log
        for log in report.logs
    )
    advice = tuple(line.removesuffix(".") for line in advice_of(recovered))
    return replace(report, logs=tuple(logs), notices=(*report.notices, *advice))
