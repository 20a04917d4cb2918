"""Finish or undo what was cut short in a log directory: of a cleaning, of a run, of a broker.

First every partition is settled: `leftovers` decides, this module carries it out. It looks at the
names in each partition directory, and reads of the files no more than the end of those to be
swapped in: where such a file is damaged, nothing of its log is changed. Then, if that is asked for
and no broker left the directory in good order, each log is recovered as a broker that starts would
do it (`log_recovery`); else its end is looked at.

Every operation goes through the `Files` that the caller hands in. Recovery may be killed or lose
power at any of them and be run again with the same end; what is in order it leaves alone.

Other directories (`-delete`, `-stray`, …), and `__cluster_metadata-0`, are a broker's business.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cleaner_jobs.source_identity import LogChangedError
from compactor.host.printable import counted
from compactor.log_dirs.locked_log_dirs import UNTIL_A_CLEAN_SHUTDOWN
from compactor.log_dirs.missing_directories import Gone
from compactor.log_dirs.missing_logs import RecordedEnds, recorded_ends
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.outcome.json_values import HIDDEN, written
from compactor.outcome.round_report import CleaningReport
from compactor.reason_codes import (
    Reason,
    ReasonCode,
    error_text,
    missing_first,
    reason_code_of,
)
from compactor.recovery.leftovers import TEMPORARY, decide_settlement, require_no_use
from compactor.recovery.whole_logs import why_not_whole
from compactor.settings.config import Config
from storage.errors import CorruptFileError, LogCompactionError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.files.overlay import OverlayFiles
from storage.formats import checkpoint, clean_shutdown
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.log.log_dir import (
    is_of_file,
    is_unloadable,
    list_partition,
    log_end_offset,
    partition_of,
    why_unloadable,
)
from storage.log.swap import apply_steps

if TYPE_CHECKING:
    from compactor.recovery.log_recovery import LogsToRecover

LOAD_THREADS = 8  # they wait for the disk most of the time
_REPLACED_FILES = (*checkpoint.ALL, SET_ASIDE)


@dataclass(frozen=True, slots=True)
class LogRecovery:
    """What was done to one log, or why nothing was. Names are those of files in its directory."""

    log_dir: str
    topic: str
    partition: int
    finished: tuple[str, ...] = ()  # put in place: their swap was complete
    undone: tuple[str, ...] = ()  # removed: their cleaning or swap was not
    removed: tuple[str, ...] = ()  # what else nobody needs any more
    rebuilt: tuple[str, ...] = ()  # made anew from the log, after an unclean shutdown
    truncated: str | None = None  # which file was cut off, and by how much; likewise
    problem: str | None = None  # why the log was left as it was
    reason_code: ReasonCode | None = None  # of the problem

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def path(self) -> str:
        return os.path.join(self.log_dir, self.name)


# why whoever goes on from here would leave the log of a topic and a partition alone, by these files
WhySetAside = Callable[[Files, str, str, int], Reason | None]


@dataclass(frozen=True, slots=True)
class LogDirRecovery:
    """What was done to a log directory."""

    path: str
    partitions: int = field(metadata=HIDDEN)  # that were looked at
    has_clean_shutdown: bool = field(metadata=written(name="clean_shutdown"))
    # those to which something was done, or should have been
    logs: tuple[LogRecovery, ...] = field(metadata=HIDDEN)
    removed: tuple[str, ...] = ()  # files of the log directory itself
    notices: tuple[str, ...] = field(default=(), metadata=HIDDEN)  # for people to judge

    def with_gone(self, gone: Gone) -> "LogDirRecovery":
        """Put first what has lost its records, among it logs whose directory is gone."""
        logs = list(self.logs)
        for missing in gone.logs:
            log = LogRecovery(log_dir=self.path, topic=missing.topic, partition=missing.partition)
            logs.append(replace(log, problem=missing.problem, reason_code=ReasonCode.LOG_MISSING))
        return replace(self, logs=tuple(missing_first(logs)), notices=gone.notices)


@dataclass(frozen=True, slots=True)
class LoadRules:
    """What decides, beside its files, how a log is recovered after an unclean shutdown."""

    config: Config
    now_ms: int  # the clock that producers expire by
    as_kafka: bool = False  # what a broker would do, also where it loses what is sound


def recover_log_dir(
    path: str,
    rules: LoadRules | None = None,
    advance: Callable[[int], object] | None = None,
    files: Files = LOCAL,
    why_set_aside: WhySetAside | None = None,
) -> LogDirRecovery:
    """Settle every partition of a log directory. The caller holds the lock of the directory.

    rules: without them nothing else is done. With LoadRules.as_kafka each log is loaded and closed,
    as by a broker that starts and stops, and then what dead runs have left goes. The mark of a
    clean shutdown is away meanwhile, and for good where one of them cannot be loaded.
    why_set_aside: is asked of each log that would change, as it would be then: one that is to be
    set aside stays as it is, byte for byte. None: those are that are not whole.
    advance: is called with how many partitions are done. What is wrong with one log is its
    `problem`, and the others go on. OSError if the directory itself cannot be listed;
    CorruptFileError and ConfigError, before anything is changed, if a checkpoint that is needed or
    the configuration of a topic is not sound.
    """
    directories, others = files.list_names(path)
    partitions = sorted(key for name in directories if (key := partition_of(name)) is not None)
    is_clean = CLEAN_SHUTDOWN in others
    as_kafka = rules is not None and rules.as_kafka
    logs_to_recover = None
    if rules is not None and (as_kafka or not is_clean):
        from compactor.recovery.log_recovery import LogsToRecover  # with kernels

        topics = {topic for topic, _ in partitions}
        logs_to_recover = LogsToRecover(path, rules.config, rules.now_ms, topics, files)
    is_own = why_set_aside is None and rules is not None and not as_kafka
    log_dir = _LogDir(
        files=files,
        is_clean=is_clean,
        rules=rules,
        to_recover=logs_to_recover,
        why=why_not_whole if is_own else why_set_aside,
        looks_again=is_own,
    )
    removed = [name for name in (f"{c}{TEMPORARY}" for c in _REPLACED_FILES) if name in others]
    for name in removed:
        files.remove(os.path.join(path, name))
    ends = recorded_ends(path, files)
    settled = []
    for key in partitions:
        log = LogRecovery(log_dir=path, topic=key[0], partition=key[1])
        settled.append(_without_records(files, log, ends) or log_dir.settle(log))
    threads, logs, is_half_done = ThreadPoolExecutor(LOAD_THREADS), [], False
    epoch = _take_mark_away(path, files) if as_kafka and is_clean else None
    try:
        at_once = threads.map if rules is not None and not is_clean else map
        loaded = at_once(log_dir.load, settled)
        for number, (before, log) in enumerate(zip(settled, loaded, strict=True)):
            is_half_done |= log.problem is not None and before.problem is None
            if log != LogRecovery(log_dir=path, topic=log.topic, partition=log.partition):
                logs.append(log)
            if advance is not None:
                advance(number + 1)
    finally:
        threads.shutdown(cancel_futures=True)
    if as_kafka and is_clean and not is_half_done:
        clean_shutdown.write(path, epoch, files)
    return LogDirRecovery(
        path=path,
        partitions=len(partitions),
        has_clean_shutdown=is_clean,
        logs=tuple(logs),
        removed=tuple(removed),
    )


def _take_mark_away(path: str, files: Files) -> int | None:
    """Remove the mark of a clean shutdown, and return its broker epoch.

    Logs that are being loaded are not in good order: their indexes have space for entries, which
    would count as entries.
    """
    epoch = clean_shutdown.read(path, files)
    files.remove(os.path.join(path, CLEAN_SHUTDOWN))
    files.sync_directory(path)
    return epoch


def _without_records(files: Files, log: LogRecovery, ends: RecordedEnds) -> LogRecovery | None:
    """A log whose records are gone, or may be: its other files stay as they are. Or None."""
    key = log.topic, log.partition
    if key not in ends.by_log and ends.unread is None:
        return None
    try:
        found = ends.why_missing_by_names(key, files.list_names(log.path)[1])
    except OSError:
        return None  # which settling it reports
    return None if found is None else _left(log, found)


@dataclass(frozen=True, slots=True)
class _LogDir:
    """Settles and loads logs of a directory; a log with a problem stays as it is."""

    files: Files
    is_clean: bool
    rules: LoadRules | None
    to_recover: "LogsToRecover | None"
    why: WhySetAside | None  # asked of each log that would change, as it would be then
    looks_again: bool  # whether it is asked of each log in the end, too

    def settle(self, log: LogRecovery) -> LogRecovery:
        """Settle one log, unless it is to be set aside as it would be then.

        With LoadRules.as_kafka it is loaded without being settled.
        """
        files = self.files
        log = _why_not_loadable(files, log)
        if log.problem is not None or (self.rules is not None and self.rules.as_kafka):
            return log
        try:
            names = files.list_names(log.path)[1]
            require_no_use(files, log.log_dir, (log.topic, log.partition), names)
            decided = decide_settlement(files, log.path, names)
            if decided.steps:
                with closing(OverlayFiles(files)) as seen:
                    apply_steps(seen, log.path, decided.steps)
                    checked = self._check(seen, log)
                if checked.problem is not None:
                    return checked
            apply_steps(files, log.path, decided.steps)
        except (CorruptFileError, OSError) as error:
            return _left(log, error)
        return replace(
            log, finished=decided.finished, undone=decided.undone, removed=decided.removed
        )

    def load(self, log: LogRecovery) -> LogRecovery:
        """Recover a log that is settled, or look at its end."""
        if log.problem is not None or self.rules is None:
            return log
        if self.to_recover is None:
            log = _check_end(self.files, log)
        elif self.rules.as_kafka:
            return self._load_as_kafka(log, self.to_recover)
        else:
            log = self._recover(log, self.to_recover)
        return self._ask(self.files, log) if self.looks_again else log

    def _check(self, seen: Files, log: LogRecovery) -> LogRecovery:
        """Look at a log as it would be once it is settled."""
        if self.to_recover is not None:
            try:
                found = self.to_recover.recovered(log.topic, log.partition, seen)
                if found is not None:
                    self.to_recover.put_in_place(found, seen)
            except (CorruptFileError, LogChangedError, OSError) as error:
                return _left(log, error)
        elif self.is_clean:
            log = _check_end(seen, log)
        return self._ask(seen, log)

    def _ask(self, seen: Files, log: LogRecovery) -> LogRecovery:
        """Note why a log is to be set aside."""
        if log.problem is not None or self.why is None:
            return log
        try:
            found = self.why(seen, log.log_dir, log.topic, log.partition)
        except OSError as error:
            return _left(log, error)
        return log if found is None else _left(log, found)

    def _recover(self, log: LogRecovery, logs: "LogsToRecover") -> LogRecovery:
        try:
            found = logs.recovered(log.topic, log.partition, self.files)
            if found is None:
                return log
            with closing(OverlayFiles(self.files)) as seen:
                if self.why is not None:
                    logs.put_in_place(found, seen)
                    if any(True for _ in seen.changes(log.path)):
                        log = self._ask(seen, log)
            if log.problem is not None:
                return log
            done = logs.put_in_place(found)
        except (CorruptFileError, LogChangedError, OSError) as error:
            return _left(log, error)
        removed = (*log.removed, *done.removed)
        return replace(log, removed=removed, rebuilt=done.rebuilt, truncated=done.truncated)

    def _load_as_kafka(self, log: LogRecovery, logs: "LogsToRecover") -> LogRecovery:
        try:
            done = logs.load_as_kafka(log.topic, log.partition, self.is_clean)
        except LogCompactionError as error:
            problem = f"no broker would start with it: {error}"
            return replace(log, problem=problem, reason_code=reason_code_of(error))
        except OSError as error:
            return _left(log, error)
        return replace(log, **done._asdict())


def _check_end(files: Files, log: LogRecovery) -> LogRecovery:
    """Check the end of the log: after a clean shutdown a broker would append after torn bytes."""
    try:
        log_end_offset(list_partition(log.path, log.topic, log.partition, files))
    except CorruptFileError as error:
        problem = f"{error}; {CLEAN_SHUTDOWN} says that it was left in good order"
        return replace(log, problem=problem, reason_code=reason_code_of(error))
    except OSError as error:
        return _left(log, error)
    return log


def _left(log: LogRecovery, why: LogCompactionError | OSError | Reason) -> LogRecovery:
    """Note why a log is left as it is."""
    if isinstance(why, Reason):
        return replace(log, problem=why.text, reason_code=why.code)
    return replace(log, problem=error_text(why), reason_code=reason_code_of(why))


def _why_not_loadable(files: Files, log: LogRecovery) -> LogRecovery:
    """Note names that no broker can load."""
    try:
        directories, names = files.list_names(log.path)
    except OSError as error:
        return _left(log, error)
    for name in filter(is_of_file, sorted(directories)):
        return _left(
            log, CorruptFileError(os.path.join(log.path, name), 0, "is a directory, not a file")
        )
    for name in filter(is_unloadable, sorted(names)):
        return _left(log, Reason(ReasonCode.FOREIGN_FILE, f"{name}: {why_unloadable(name)}"))
    return log


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
