"""Delete old segments of a round's logs, after their cleaning and its checkpoints (C-3.2, C-18).

`apply_retention` lists every log again, since cleaning has merged its segments, and deletes what
the rules say; `estimate_retention` reports what a dry run would delete. The steps of a deletion,
and what a starting broker makes of a crash after each:

1. where all segments go: producer snapshot,      an index without its .log is removed; with the
   .index, .timeindex and .log of a new one at    .log, the log is as after a roll
   the log end offset, the .log last
2. log-start-offset-checkpoint                    the log and its leader-epoch file start at this
                                                  offset; the broker's retention deletes the rest
3. leader-epoch-checkpoint                        as after step 2
4. .log files -> .deleted, oldest first; sync     .deleted goes, so does an index without its .log;
                                                  the checkpoint has the log start offset
5. index files -> .deleted; sync                  as after step 4: no index goes before its .log
6. remove the snapshots of deleted bases          stale ones are removed
7. remove the .deleted files                      the .deleted files that remain are removed

The recovery point and the cleaner checkpoint stay: a broker expects entries below the log start.
Of the steps that cannot be undone, step 2 comes first: if a file went before it, readers below
would meet a gap. It is one write for all logs of a log directory, once their new active segments
exist and before any file goes, so `roll` (step 1), `raise_log_starts` (2) and `delete_segments`
(3 to 7) are apart.

Source: Kafka, UnifiedLog.deleteSegments, LeaderEpochFileCache.truncateFromStart; spec C-18.3,
C-18.4, C-23.7.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.source_identity import LogChangedError, check_same
from compactor.finalizer import mark_deleted
from compactor.outcome.round_report import LogKey, LogReport, LogStatus
from compactor.planning.log_retention import (
    LogRetention,
    MergedSegments,
    check_leader_epochs,
    deletion_after,
    deletion_of,
    retention_report,
)
from compactor.reason_codes import ReasonCode, error_text
from storage.errors import CorruptFileError
from storage.file_names import INDEX, INDEX_SUFFIXES, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.files.files import Entry, Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, leader_epoch_checkpoint, producer_snapshot
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.formats.producer_snapshot import ProducerEntry
from storage.log.log_dir import PartitionListing, list_files, list_partition
from storage.log.producer_state import ExpiryClock, load_producer_state
from storage.log.retention import Deletion

if TYPE_CHECKING:
    from compactor.originals.originals_keeper import OriginalsKeeper

NOT_RETAINED = "retention deletes no segment of it before it has been cleaned"
ROLLED = (SNAPSHOT, INDEX, TIME_INDEX, LOG)  # what step 1 makes, in its order

_PROBLEMS = CorruptFileError, LogChangedError, OSError
_LEFT_ALONE = (LogStatus.FAILED, LogStatus.SET_ASIDE)


def apply_retention(
    logs: Sequence[LogRetention],
    reports: Iterable[LogReport],
    originals: "OriginalsKeeper | None" = None,
    files: Files = LOCAL,
) -> tuple[LogReport, ...]:
    """Delete what the rules say of every log that did not fail; the reports, with what went.

    logs: those that the plan chose. originals: keeps what goes, before it does. A log on which
    retention itself fails is reported so; the others go on.
    """
    by_key = {report.key: report for report in reports}
    doomed = []
    for retention in _not_waiting(logs, by_key):
        try:
            found = _doomed(retention, originals, files)
        except _PROBLEMS as error:
            by_key[retention.key] = _failed(by_key[retention.key], error)
            continue
        if found is not None:
            doomed.append(found)
    for log_dir in dict.fromkeys(each.retention.log_dir for each in doomed):
        in_it = [each for each in doomed if each.retention.log_dir == log_dir]
        _delete_in(files, log_dir, in_it, by_key)
    return tuple(by_key.values())


def estimate_retention(
    logs: Sequence[LogRetention],
    reports: Iterable[LogReport],
    cleaned: Mapping[LogKey, Sequence[MergedSegments]],
    files: Files = LOCAL,
) -> tuple[LogReport, ...]:
    """Report, for a dry run, which segments retention would delete after the cleaning.

    cleaned: the segment groups of those logs that would be cleaned.
    """
    by_key = {report.key: report for report in reports}
    for retention in _not_waiting(logs, by_key):
        key = retention.key
        try:
            log = list_partition(retention.path, retention.topic, retention.partition, files)
            deletion = deletion_after(log, retention.limits, cleaned.get(key, ()))
        except _PROBLEMS as error:
            by_key[key] = _failed(by_key[key], error)
        else:
            by_key[key] = replace(by_key[key], retention=retention_report(deletion))
    return tuple(by_key.values())


def roll(
    log: PartitionListing, base_offset: int, producers: Callable[[], Sequence[ProducerEntry]]
) -> None:
    """Step 1: an empty active segment at the log end offset.

    producers: those active at base_offset, for the snapshot, unless the last shutdown wrote it.
    """
    if base_offset not in log.snapshot_offsets:
        snapshot_path = os.path.join(log.path, file_name(base_offset, SNAPSHOT))
        producer_snapshot.write(snapshot_path, producers(), log.access)
    for kind in ROLLED[1:]:
        log.access.replace_file(os.path.join(log.path, file_name(base_offset, kind)), b"")


def raise_log_starts(files: Files, log_dir: str, log_starts: Mapping[TopicPartition, int]) -> None:
    """Step 2, for all logs of a log directory that lose segments; no entry is lowered."""
    path = os.path.join(log_dir, checkpoint.LOG_START)
    entries = checkpoint.read(path, files)
    raised = {key: max(offset, entries.get(key, 0)) for key, offset in log_starts.items()}
    if raised.items() <= entries.items():
        return
    checkpoint.write(path, entries | raised, files)


def delete_segments(log: PartitionListing, deletion: Deletion) -> None:
    """Steps 3 to 7."""
    entries, files = check_leader_epochs(log), log.access
    cut = leader_epochs_from(entries, deletion.log_start_offset)
    if cut != entries:
        leader_epoch_checkpoint.write(os.path.join(log.path, LEADER_EPOCH_CHECKPOINT), cut, files)
    bases = [segment.base_offset for segment in deletion.segments]
    deleted = mark_deleted(files, log.path, bases, (LOG,))
    files.sync_directory(log.path)
    deleted += mark_deleted(files, log.path, bases, INDEX_SUFFIXES)
    files.sync_directory(log.path)
    for segment in deletion.segments:
        path = os.path.join(log.path, file_name(segment.base_offset, SNAPSHOT))
        if files.exists(path):
            files.remove(path)
    for path in deleted:
        files.remove(path)


def leader_epochs_from(
    entries: Sequence[EpochEntry], log_start_offset: int
) -> Sequence[EpochEntry]:
    """Cut the start of the epochs; the one that covers the log start offset begins at it."""
    covering = [entry for entry in entries if entry.start_offset <= log_start_offset]
    if not covering:
        return entries
    return [covering[-1]._replace(start_offset=log_start_offset), *entries[len(covering) :]]


def _not_waiting(
    logs: Iterable[LogRetention], reports: dict[LogKey, LogReport]
) -> Iterator[LogRetention]:
    """Yield the logs that did not fail, and note on others that retention waits.

    As Kafka skips a partition on which its cleaner failed (C-3.2.3).
    """
    for retention in logs:
        report = reports.get(retention.key)
        if report is not None and report.status in _LEFT_ALONE:
            reports[report.key] = replace(report, notes=(*report.notes, NOT_RETAINED))
        elif report is not None:
            yield retention


class _Doomed(NamedTuple):
    """A log that loses segments."""

    log: PartitionListing
    retention: LogRetention
    deletion: Deletion


def _doomed(
    retention: LogRetention, originals: "OriginalsKeeper | None", files: Files
) -> _Doomed | None:
    """Decide on the log as it stands, and do what can be undone: step 1."""
    log = list_partition(retention.path, retention.topic, retention.partition, files)
    if not log.segments:
        return None
    deletion = deletion_of(log, retention.limits)
    if not deletion.by_rule:
        return None
    check_leader_epochs(log)
    if originals is not None:
        key = log.topic, log.partition
        originals.keep_deletion(retention.log_dir, key, log.path, deletion)
        log = log._replace(files=tuple(_with_second_names(log)))
    if deletion.rolls_at is not None:
        end_offset = deletion.rolls_at
        roll(log, end_offset, lambda: _producers(log, retention, end_offset))
    return _Doomed(log, retention, deletion)


def _with_second_names(log: PartitionListing) -> Iterator[Entry]:
    """The files of a log after some were linked, which changes the ctime of these and no more."""
    found = {entry.name: entry for entry in list_files(log.path, log.access)}
    for entry in log.files:
        now = found.get(entry.name, entry)
        yield now if now._replace(ctime_ns=entry.ctime_ns) == entry else entry


def _producers(
    log: PartitionListing, retention: LogRetention, end_offset: int
) -> list[ProducerEntry]:
    clock = ExpiryClock(retention.limits.now_ms, retention.producer_id_expiration_ms)
    state = load_producer_state(log, retention.limits.log_start_offset, end_offset, clock)
    return [entry for _, entry in sorted(state.entries.items())]


def _delete_in(
    files: Files, log_dir: str, doomed: Iterable[_Doomed], reports: dict[LogKey, LogReport]
) -> None:
    unchanged: dict[LogKey, _Doomed] = {}
    for each in doomed:
        key = each.retention.key
        try:
            _require_unchanged(each)
        except _PROBLEMS as error:
            reports[key] = _failed(reports[key], error)
        else:
            unchanged[key] = each
    if not unchanged:
        return
    log_starts = {name[1:]: each.deletion.log_start_offset for name, each in unchanged.items()}
    try:
        raise_log_starts(files, log_dir, log_starts)
    except _PROBLEMS as error:
        reports.update((name, _failed(reports[name], error)) for name in unchanged)
        return
    for name, each in unchanged.items():
        try:
            delete_segments(each.log, each.deletion)
        except _PROBLEMS as error:
            reports[name] = _failed(reports[name], error)
        else:
            counted = retention_report(each.deletion)
            reports[name] = replace(reports[name], retention=counted)


def _require_unchanged(each: _Doomed) -> None:
    """What was decided of the log has to be true of it when its start is raised."""
    log, rolls_at = each.log, each.deletion.rolls_at
    before = {entry.name: entry for entry in log.files}
    found = {entry.name: entry for entry in list_files(log.path, log.access)}
    made = {file_name(rolls_at, kind) for kind in ROLLED} if rolls_at is not None else set()
    for name in sorted((before.keys() | found.keys()) - made):
        check_same(os.path.join(log.path, name), before.get(name), found.get(name))


def _failed(report: LogReport, error: Exception) -> LogReport:
    """A cleaning that is done stays done; what comes after it is not."""
    done = "cleaned, but " if report.status is LogStatus.CLEANED else ""
    return replace(
        report,
        status=LogStatus.FAILED,
        reason=f"{done}retention stopped: {error_text(error)}",
        reason_code=ReasonCode.NOT_FINISHED,
    )
