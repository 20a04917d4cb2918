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
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.source_identity import LogChangedError
from compactor.host.printable import counted
from compactor.log_dirs.locked_log_dirs import UNTIL_A_CLEAN_SHUTDOWN
from compactor.log_dirs.missing_directories import Gone
from compactor.log_dirs.missing_logs import RecordedEnds, recorded_ends
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.outcome.json_values import HIDDEN, written
from compactor.outcome.round_report import CleaningReport
from compactor.reason_codes import Reason, ReasonCode, missing_first, reason_code_of
from compactor.recovery.leftovers import TEMPORARY, Settlement, decide_settlement, require_no_use
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
_REPLACED_FILES = (
    checkpoint.CLEANER_OFFSET,
    checkpoint.LOG_START,
    checkpoint.RECOVERY_POINT,
    checkpoint.REPLICATION,
    SET_ASIDE,
)


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


# looks at a log, by way of these files, and notes a problem
Check = Callable[[Files, LogRecovery], LogRecovery]
# likewise, of a topic and a partition: why whoever goes on from here would leave the log alone
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
    is_clean = clean_shutdown.CLEAN_SHUTDOWN in others
    own = _own_rules(path, rules, is_clean, {topic for topic, _ in partitions}, files)
    if why_set_aside is not None:
        own = own.unless(why_set_aside, files)
    elif rules is not None and not rules.as_kafka:
        own = own.if_whole(files)
    removed = [name for name in (f"{c}{TEMPORARY}" for c in _REPLACED_FILES) if name in others]
    for name in removed:
        files.remove(os.path.join(path, name))
    as_kafka = rules is not None and rules.as_kafka
    ends = recorded_ends(path, files)
    settled = []
    for key in partitions:
        log = LogRecovery(log_dir=path, topic=key[0], partition=key[1])
        missing = _without_records(files, log, ends)
        settled.append(missing or _settle(files, log, None if as_kafka else own.check))
    threads, logs, is_half_done = ThreadPoolExecutor(LOAD_THREADS), [], False
    epoch = _take_mark_away(path, files) if as_kafka and is_clean else None
    try:
        at_once = threads.map if rules is not None and not is_clean else map
        loaded = at_once(own.load, settled)
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
    files.remove(os.path.join(path, clean_shutdown.CLEAN_SHUTDOWN))
    files.sync_directory(path)
    return epoch


class _OwnRules(NamedTuple):
    """What is done to each log of a directory."""

    check: Check  # before it is settled
    load: Callable[[LogRecovery], LogRecovery]  # once it is settled
    logs: "LogsToRecover | None" = None  # where it is recovered without a loss

    def unless(self, why: WhySetAside, files: Files) -> "_OwnRules":
        """Do nothing to a log that is to be set aside."""
        own = self._replace(check=_both(self.check, why))
        logs = self.logs
        if logs is None:
            return own
        return own._replace(load=lambda log: log if log.problem else _load(files, log, logs, why))

    def if_whole(self, files: Files) -> "_OwnRules":
        """Do nothing to a log of which records are gone, or would go at a broker's start."""
        own, is_whole = self.unless(why_not_whole, files), _both(_check_nothing, why_not_whole)
        return own._replace(load=lambda log: is_whole(files, own.load(log)))


def _own_rules(
    log_dir: str,
    rules: LoadRules | None,
    is_clean: bool,
    topics: Collection[str],
    files: Files,
) -> _OwnRules:
    check = _check_end if is_clean else _check_nothing
    if rules is None:
        return _OwnRules(check, lambda log: log)
    if is_clean and not rules.as_kafka:
        return _OwnRules(check, lambda log: _check_end(files, log))
    from compactor.recovery.log_recovery import LogsToRecover  # with kernels

    logs = LogsToRecover(log_dir, rules.config, rules.now_ms, topics, files)
    if rules.as_kafka:
        return _OwnRules(
            check, lambda log: log if log.problem else _load_as_kafka(log, logs, is_clean)
        )
    return _OwnRules(
        lambda seen, log: _check_recoverable(seen, log, logs),
        lambda log: log if log.problem else _load(files, log, logs),
        logs,
    )


def _without_records(files: Files, log: LogRecovery, ends: RecordedEnds) -> LogRecovery | None:
    """A log whose records are gone, or may be: its other files stay as they are. Or None."""
    key = log.topic, log.partition
    if key not in ends.by_log and ends.unread is None:
        return None
    try:
        found = ends.why_missing_by_names(key, files.list_names(log.path)[1])
    except OSError:
        return None  # which `leftovers` reports
    return None if found is None else replace(log, problem=found.text, reason_code=found.code)


def _both(check: Check, why_set_aside: WhySetAside) -> Check:
    def checked(seen: Files, log: LogRecovery) -> LogRecovery:
        log = check(seen, log)
        if log.problem is not None:
            return log
        try:
            found = why_set_aside(seen, log.log_dir, log.topic, log.partition)
        except OSError as error:
            return _unreadable(log, error)
        return log if found is None else replace(log, problem=found.text, reason_code=found.code)

    return checked


def _check_nothing(_: Files, log: LogRecovery) -> LogRecovery:
    return log


def _check_end(files: Files, log: LogRecovery) -> LogRecovery:
    """Check the end of the log: after a clean shutdown a broker would append after torn bytes."""
    if log.problem is not None:
        return log
    try:
        log_end_offset(list_partition(log.path, log.topic, log.partition, files))
    except CorruptFileError as error:
        problem = f"{error}; {clean_shutdown.CLEAN_SHUTDOWN} says that it was left in good order"
        return replace(log, problem=problem, reason_code=reason_code_of(error))
    except OSError as error:
        return _unreadable(log, error)
    return log


def _unreadable(log: LogRecovery, error: OSError) -> LogRecovery:
    problem = f"{error.filename}: {error.strerror}"
    return replace(log, problem=problem, reason_code=reason_code_of(error))


def _load_as_kafka(log: LogRecovery, logs: "LogsToRecover", is_clean: bool) -> LogRecovery:
    try:
        done = logs.load_as_kafka(log.topic, log.partition, is_clean)
    except LogCompactionError as error:
        problem = f"no broker would start with it: {error}"
        return replace(log, problem=problem, reason_code=reason_code_of(error))
    except OSError as error:
        return _unreadable(log, error)
    return replace(
        log,
        finished=done.finished,
        undone=done.undone,
        removed=done.removed,
        rebuilt=done.rebuilt,
        truncated=done.truncated,
    )


def _load(
    files: Files, log: LogRecovery, logs: "LogsToRecover", why: WhySetAside | None = None
) -> LogRecovery:
    try:
        found = logs.recovered(log.topic, log.partition, files)
        if found is None:
            return log
        if why is not None:
            log = _foreseen(files, log, lambda seen: logs.put_in_place(found, seen), why)
            if log.problem is not None:
                return log
        done = logs.put_in_place(found)
    except (CorruptFileError, LogChangedError, OSError) as error:
        return _set_aside(log, error)
    return replace(
        log,
        removed=(*log.removed, *done.removed),
        rebuilt=done.rebuilt,
        truncated=done.truncated,
    )


def _foreseen(
    files: Files, log: LogRecovery, change: Callable[[Files], object], why: WhySetAside
) -> LogRecovery:
    """The log, and why it is to be set aside once it has changed; it is asked only if it does."""
    seen = OverlayFiles(files)
    try:
        change(seen)
        is_changed = any(True for _ in seen.changes(log.path))
        return _both(_check_nothing, why)(seen, log) if is_changed else log
    finally:
        seen.close()


def _check_recoverable(files: Files, log: LogRecovery, logs: "LogsToRecover") -> LogRecovery:
    """files: on which it is recovered, and which is not what is on disk."""
    try:
        found = logs.recovered(log.topic, log.partition, files)
        if found is not None:
            logs.put_in_place(found, files)
    except (CorruptFileError, LogChangedError, OSError) as error:
        return _set_aside(log, error)
    return log


def _set_aside(log: LogRecovery, error: LogCompactionError | OSError) -> LogRecovery:
    if isinstance(error, OSError):
        return _unreadable(log, error)
    return replace(log, problem=str(error), reason_code=reason_code_of(error))


def _why_not_loadable(files: Files, log: LogRecovery) -> LogRecovery:
    """The log; its problem: names that no broker can load."""
    try:
        directories, names = files.list_names(log.path)
    except OSError as error:
        return _unreadable(log, error)
    for name in filter(is_of_file, sorted(directories)):
        found = CorruptFileError(os.path.join(log.path, name), 0, "is a directory, not a file")
        return replace(log, problem=str(found), reason_code=reason_code_of(found))
    for name in sorted(name for name in names if is_unloadable(name)):
        problem = f"{name}: {why_unloadable(name)}"
        return replace(log, problem=problem, reason_code=ReasonCode.FOREIGN_FILE)
    return log


def _settle(files: Files, log: LogRecovery, check: Check | None) -> LogRecovery:
    """Settle one partition, if nothing speaks against it and `check` accepts the result.

    check: None: it is loaded without being settled.
    """
    log = _why_not_loadable(files, log)
    if log.problem is not None or check is None:
        return log
    try:
        names = files.list_names(log.path)[1]
        require_no_use(files, log.log_dir, (log.topic, log.partition), names)
        decided = decide_settlement(files, log.path, names)
        if decided.steps:
            checked = _check_settled(files, log, decided, check)
            if checked.problem is not None:
                return checked
        apply_steps(files, log.path, decided.steps)
    except (CorruptFileError, OSError) as error:
        return _set_aside(log, error)
    return replace(log, finished=decided.finished, undone=decided.undone, removed=decided.removed)


def _check_settled(
    files: Files, log: LogRecovery, decided: Settlement, check: Check
) -> LogRecovery:
    """Look at the log as it would be: one that is set aside then stays as it is, byte for byte."""
    seen = OverlayFiles(files)
    try:
        apply_steps(seen, log.path, decided.steps)
        return check(seen, log)
    finally:
        seen.close()


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
