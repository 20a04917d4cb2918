"""A script's cleaning of its log: the round of a cleaner, put in place as a log manager does it.

What is counted is what Kafka's cleaner counts. Source: Kafka, LogCleanerManager, Cleaner.doClean,
CleanerStats, MemoryRecords.filterTo; spec C-3 to C-5, C-18.
"""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import pairwise

from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus
from compactor.planning.selection import first_dirty
from compactor.reason_codes import ReasonCode
from storage.file_names import parse_partition_dir
from storage.files.files import Files
from storage.formats import checkpoint, producer_snapshot
from storage.formats.checkpoint import TopicPartition
from storage.formats.txn_index import AbortedTxn
from storage.log.batches import Batch
from storage.log.errors import IllegalArgumentError, InvalidRecordError, LogError
from storage.log.log import Log
from storage.log.log_manager import CleanedLog, LogCleaner, LogToClean
from storage.log.log_state import CleanedGroup
from storage.log.segment import LogSegment
from tests.engine.replay.script_values import Line, LogCleaningError, NotCleanedError, Values

# a cleaner whose map takes so many keys, if that is limited, and who is told how a round went
CleanerMaker = Callable[[int | None, Callable[[CleaningReport], object]], LogCleaner]


class ScriptCleaning:
    """Cleans one log at a time, by a cleaner that is made for each line."""

    def __init__(self, files: Files, make_cleaner: CleanerMaker) -> None:
        self._files, self._make_cleaner = files, make_cleaner

    def clean(self, log: Log, values: Values, line: Line) -> Line:
        """Clean what the cleaner manager would take, or the range that the line names."""
        self._make_checkpoint(log)
        is_ranged = "first_dirty" in line
        if not is_ranged and not log.config.is_compacted:
            return {"cleaned": False}
        asked = self._ranged(log, values, line) if is_ranged else self._as_it_is(log)
        start = asked.first_dirty or 0
        if not is_ranged:
            _require_first_batches(asked, start)
        if is_ranged and start >= asked.view.last_stable:
            if start > asked.active_base:
                raise IllegalArgumentError(f"a range of offsets from {start} down")
            return self._nothing(log, asked)
        if not asked.bases:
            return self._nothing(log, asked) if is_ranged else {"cleaned": False}
        reports: list[CleaningReport] = []
        cleaner = self._make_cleaner(line.get("slots"), reports.append)
        with cleaner.cleaned([asked], log.now_ms) as done:
            report = reports[0].logs[0]
            if report.status is LogStatus.PASSED_OVER:
                return {"cleaned": False}
            if report.reason_code is ReasonCode.RECORD_TOO_LARGE:
                raise InvalidRecordError(report.reason)
            if report.status is not LogStatus.CLEANED:
                raise NotCleanedError(report.reason)
            return self._put_in_place(log, asked, done[0], report)

    def _as_it_is(self, log: Log) -> LogToClean:
        """As the cleaner manager finds it; an entry that cannot be is set right (C-4.2)."""
        known = checkpoint.read(self._checkpoint(log), self._files).get(_partition(log))
        dirty = first_dirty(known, log.log_start_offset, log.log_end_offset)
        if dirty.rewrites_checkpoint:
            self._write_checkpoint(log, dirty.offset)
        return self._from(log, dirty.offset)

    def _from(self, log: Log, dirty_offset: int) -> LogToClean:
        """The last stable offset alone says how far transactions are decided, whatever the
        producers say: those of a damaged log may contradict it."""
        producers = [
            known.entry()._replace(current_txn_first_offset=None)
            for known in log.producers.producers
        ]
        return LogToClean(
            partition=_partition(log),
            directory=log.path,
            view=log.view()._replace(producers=producer_snapshot.encode(producers)),
            first_dirty=dirty_offset,
            config=log.config,
        )

    def _ranged(self, log: Log, values: Values, line: Line) -> LogToClean:
        """Nothing but the range counts: no checkpoint, lag, dirty ratio or open transaction."""
        asked = self._from(log, values.offset(line, "first_dirty"))
        return replace(
            asked,
            view=asked.view._replace(last_stable=values.offset(line, "uncleanable")),
            config=asked.config.changed({"min.compaction.lag.ms": "0"}),
            is_due=True,
        )

    def _nothing(self, log: Log, asked: LogToClean) -> Line:
        """An empty range: Kafka's map has no offset then, and what it has reached is offset 0."""
        self._write_checkpoint(log, 0)
        counted = ("messages_read", "messages_written", "bytes_read", "bytes_written")
        return {
            "cleaned": True,
            "first_dirty_offset": asked.first_dirty,
            "first_uncleanable_offset": asked.active_base,
            "end_offset": 0,
            **dict.fromkeys((*counted, "invalid_messages_read"), 0),
        }

    def _put_in_place(
        self, log: Log, asked: LogToClean, done: CleanedLog, report: LogReport
    ) -> Line:
        bases = {base for group in done.groups for base in group.old_bases}
        old = [segment for segment in asked.view.segments if segment.base_offset in bases]
        aborted = log.aborted_transactions(old[0].base_offset, asked.active_base)
        discardable = _discardable(old, aborted)  # before their files go
        for group in done.groups:
            log.replace_segments(group, [s for s in old if s.base_offset in group.old_bases])
        kept = _kept(log, done.groups)
        unread = sum(count for last, count in discardable.items() if last not in kept)
        self._write_checkpoint(log, done.end_offset)
        counts = report.counts
        return {
            "cleaned": True,
            "first_dirty_offset": asked.first_dirty,
            "first_uncleanable_offset": report.first_uncleanable_offset,
            "end_offset": done.end_offset,
            "messages_read": counts.records_read - unread,
            "messages_written": counts.records_kept,
            "bytes_read": report.bytes_before,
            "bytes_written": report.bytes_after,
            "invalid_messages_read": counts.dropped_null_key,
        }

    def _make_checkpoint(self, log: Log) -> None:
        """An empty file, as the cleaner manager makes it when it starts."""
        path = self._checkpoint(log)
        if not self._files.exists(path):
            self._files.open_to_change(path, create=True).close()

    def _checkpoint(self, log: Log) -> str:
        return os.path.join(os.path.dirname(log.path), checkpoint.CLEANER_OFFSET)

    def _write_checkpoint(self, log: Log, offset: int) -> None:
        path = self._checkpoint(log)
        entries = checkpoint.read(path, self._files) | {_partition(log): offset}
        checkpoint.write(path, entries, self._files)


def _partition(log: Log) -> TopicPartition:
    found = parse_partition_dir(os.path.basename(log.path))
    assert found is not None, "a log is in a partition's directory"
    return found


def _require_first_batches(asked: LogToClean, start: int) -> None:
    """Read the times by which a log may be overdue, as Kafka does of every log."""
    try:
        for segment, after in pairwise(asked.view.segments):
            if after.base_offset > start:
                segment.first_batch_ms()
    except LogError as error:
        raise LogCleaningError(f"{asked.directory} cannot be weighed: {error}") from error


def _discardable(segments: Iterable[LogSegment], aborted: Collection[AbortedTxn]) -> dict[int, int]:
    """Records, by last offset, of the batches that Kafka's cleaner may drop without reading them:
    markers, and those of aborted transactions."""
    return {
        batch.last_offset: batch.header.records_count
        for segment in segments
        for batch in segment.log.batches()
        if batch.is_control or (batch.is_transactional and _is_aborted(batch, aborted))
    }


def _is_aborted(batch: Batch, aborted: Collection[AbortedTxn]) -> bool:
    return any(
        txn.producer_id == batch.producer_id
        and txn.first_offset <= batch.base_offset <= txn.last_offset
        for txn in aborted
    )


def _kept(log: Log, groups: Iterable[CleanedGroup]) -> set[int]:
    """The last offsets of all batches that there are now in the place of those groups."""
    bases = {base for group in groups for base in group.new_bases}
    made = [segment for segment in log.segments if segment.base_offset in bases]
    return {batch.last_offset for segment in made for batch in segment.log.batches()}
