"""The cleaner of a log manager: rounds beside appends and reads, in the manager's own process.

    with LogManager(["/data/kafka"], cleaner=Cleaner("/data/compactor-work")) as manager: ...

A round never works in the manager's log directories. The closed segments of each log get second
names, by hard links, in a log directory of the round's own, and the active one is copied. The
manager gets what the round leaves, and puts it in place as Kafka does. The files of the log are
only read.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from compactor.api.arguments import checked
from compactor.api.runs import run
from compactor.errors import ConfigError
from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus
from compactor.settings.rules import ONE_ROUND, Rules, RunOptions
from storage.arguments import PathArg
from storage.file_names import (
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    offset_of,
)
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown, producer_snapshot
from storage.formats.kafka_settings import COMPACT, MAX_INT
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.log_manager import CleanedLog, LogToClean
from storage.log.log_state import CleanedGroup

# the producers are those that the log has at this moment, as if they had just written: whether they
# expire is its own affair
# retention is the manager's own affair: here the log is compacted, and nothing else
_OF_MANAGER = {"cleanup.policy": COMPACT, "retention.ms": -1, "retention.bytes": -1}
_NONE_EXPIRES = {"producer.id.expiration.ms": str(MAX_INT)}
COPIED_BYTES = 1024 * 1024  # at a time, of an active segment


class Cleaner:
    """Cleans the logs that a manager gives it, by rounds beside its work. One round at a time."""

    @checked
    def __init__(
        self,
        work_dir: PathArg,
        options: RunOptions = ONE_ROUND,
        on_report: Callable[[CleaningReport], object] = lambda _: None,
        rewrites_all: bool = False,
        kafka: str | None = None,
    ) -> None:
        """Check the options of all rounds.

        work_dir: in no log directory, and on the file system of all of them.
        options: see `run`; workers or a Spark session in it save the start of them for each round.
        on_report: gets the report of each round, with the logs that could not be cleaned.
        rewrites_all: makes new files of segments that lose nothing, too, as Kafka's cleaner does.
        kafka: the version whose answer is wanted; None: the newest that is known.
        """
        if options.dry_run or options.keep_originals is not None:
            raise ConfigError("a log manager's cleaner neither runs dry nor keeps originals")
        self._work_dir = os.fspath(work_dir)
        self._options, self._on_report = options, on_report
        self._rewrites_all, self._kafka = rewrites_all, kafka

    @contextmanager
    def cleaned(self, logs: Sequence[LogToClean], now_ms: int) -> Iterator[list[CleanedLog]]:
        """Run one round over the logs. Raises what `run` does; then no log was changed."""
        own = LOCAL.make_temporary_directory("managed-", self._work_dir)
        try:
            log_dir = os.path.join(own, "logs")
            _lay_out(log_dir, logs, now_ms)
            topics = {log.partition[0]: log.config.for_cleaning() | _OF_MANAGER for log in logs}
            rules = Rules(
                topic_configs=topics,
                settings=_NONE_EXPIRES,
                as_of=now_ms,
                any_clock=True,
                no_metadata=True,
                due={log.partition for log in logs if log.is_due},
                known_whole=True,
                kafka=self._kafka,
                high_watermarks={log.partition: log.view.high_watermark for log in logs},
            )
            report = run([log_dir], rules, replace(self._options, work_dir=own, retention=False))
            self._on_report(report)
            if self._rewrites_all:
                _copy_what_was_left(logs, log_dir, report)
            reports = {(each.topic, each.partition): each for each in report.logs}
            yield [
                _result(log, log_dir, reports[log.partition])
                for log in logs
                if reports[log.partition].status is LogStatus.CLEANED
            ]
        finally:
            LOCAL.discard_directory(own)


def _lay_out(log_dir: str, logs: Sequence[LogToClean], now_ms: int) -> None:
    """Make a log directory as a broker would leave it that is shut down at this moment."""
    LOCAL.make_directory(log_dir)
    for log in logs:
        _lay_out_log(os.path.join(log_dir, _name(log)), log, now_ms)
    known = {log.partition: log.first_dirty for log in logs if log.first_dirty is not None}
    starts = {log.partition: log.view.log_start for log in logs}
    ends = {log.partition: log.view.log_end for log in logs}
    stable = {log.partition: log.view.last_stable for log in logs}
    for name, entries in (
        (checkpoint.CLEANER_OFFSET, known),
        (checkpoint.LOG_START, starts),
        (checkpoint.RECOVERY_POINT, ends),
        (checkpoint.REPLICATION, stable),
    ):
        checkpoint.write(os.path.join(log_dir, name), entries, LOCAL)
    clean_shutdown.write(log_dir, files=LOCAL)


def _lay_out_log(path: str, log: LogToClean, now_ms: int) -> None:
    LOCAL.make_directory(path)
    for base in log.bases:
        for name in (file_name(base, kind) for kind in SEGMENT_SUFFIXES):
            if LOCAL.exists(os.path.join(log.directory, name)):
                LOCAL.link(os.path.join(log.directory, name), os.path.join(path, name))
    _copy_active(path, log)
    snapshot = os.path.join(path, file_name(log.view.log_end, SNAPSHOT))
    known = producer_snapshot.decode(log.view.producers, snapshot)
    entries = [each._replace(timestamp=now_ms) for each in known]
    producer_snapshot.write(snapshot, entries, LOCAL)
    epochs = LOCAL.read_bytes(os.path.join(log.directory, LEADER_EPOCH_CHECKPOINT))
    LOCAL.replace_file(os.path.join(path, LEADER_EPOCH_CHECKPOINT), epochs)


def _copy_active(path: str, log: LogToClean) -> None:
    """Copy the active segment as far as it is written now. Its indexes stay empty."""
    active, left = log.view.segments[-1], log.view.active_bytes
    copy = LOCAL.open_to_change(os.path.join(path, file_name(log.active_base, LOG)), create=True)
    try:
        for position in range(0, left, COPIED_BYTES):
            data = active.log.read(position, min(COPIED_BYTES, left - position))
            copy.write(position, data)
        copy.sync()
    finally:
        copy.close()
    for kind in (INDEX, TIME_INDEX):
        LOCAL.replace_file(os.path.join(path, file_name(log.active_base, kind)), b"")
    name = file_name(log.active_base, TXN_INDEX)
    if LOCAL.exists(os.path.join(log.directory, name)):
        data = LOCAL.read_bytes(os.path.join(log.directory, name))
        LOCAL.replace_file(os.path.join(path, name), data)


def _name(log: LogToClean) -> str:
    return f"{log.partition[0]}-{log.partition[1]}"


def _copy_what_was_left(logs: Sequence[LogToClean], log_dir: str, report: CleaningReport) -> None:
    """Copy each segment below the round's end that is still the log's own file."""
    ends = {(each.topic, each.partition): each.end_offset or 0 for each in report.logs}
    for log in logs:
        path = os.path.join(log_dir, _name(log))
        for base in log.bases:
            own = LOCAL.look_up(os.path.join(path, file_name(base, LOG)))
            if base < ends[log.partition] and own and own.inode == _inode(log, base):
                _copy_segment(path, base)


def _copy_segment(path: str, base: int) -> None:
    for kind in SEGMENT_SUFFIXES:
        name = os.path.join(path, file_name(base, kind))
        found = LOCAL.look_up(name)
        if found is not None:
            LOCAL.replace_file(name, LOCAL.read_bytes(name))
            LOCAL.set_modified(name, found.mtime_ns // 1_000_000)


def _result(log: LogToClean, log_dir: str, report: LogReport) -> CleanedLog:
    """Return what the round has rewritten: the segments whose `.log` is another file now."""
    path = os.path.join(log_dir, _name(log))
    found = {entry.name: entry.inode for entry in LOCAL.list_directory(path)}
    logs = [(offset_of(name), inode) for name, inode in found.items() if name.endswith(LOG)]
    inodes = {base: inode for base, inode in logs if base is not None and base < log.active_base}
    made = [base for base, inode in sorted(inodes.items()) if inode != _inode(log, base)]
    assert report.end_offset is not None, "of a log that was cleaned"
    groups = tuple(_groups(log, path, sorted(inodes), made))
    return CleanedLog(log.partition, groups, report.end_offset)


def _inode(log: LogToClean, base: int) -> int | None:
    found = LOCAL.look_up(os.path.join(log.directory, file_name(base, LOG)))
    return None if found is None else found.inode


def _groups(
    log: LogToClean, path: str, bases: Sequence[int], made: Sequence[int]
) -> Iterator[CleanedGroup]:
    """Yield the groups, each from one old base offset that still exists to the next."""
    starts = [base for base in bases if base in log.bases]
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else log.active_base
        new = tuple(base for base in made if start <= base < end)
        if new:
            old = tuple(base for base in log.bases if start <= base < end)
            yield CleanedGroup(path, old, new)
