"""Reader's proof of one partition: what readers find after a cleaning, compared with before.

Each record that is gone had a reason, each that is left is what it was, none is new; both views of
transactions agree; a producer's last batch is kept. Two passes over the log before, one
over the log after; what stays in memory is the latest offset of each key, and transactions.
Rules: compaction C-7.5, C-8, C-10.4, C-11.2, C-11.3, C-11.12.
"""

import os
from collections.abc import Iterable, Iterator

import numpy as np

from compactor.host.shell_commands import named
from compactor.log_checks.findings import Finding, difference, unexplained
from compactor.verification.evidence import LogClock
from compactor.verification.gone_records import Books, GoneRecords, LogStartCheck
from compactor.verification.header_check import BatchProblem, HeaderCheck
from compactor.verification.overdue import Kept, LastBatches, Overdue
from compactor.verification.proof import MAX_FINDINGS, TRUNCATED, Proof
from compactor.verification.reader_bounds import RemovalBounds, Side
from compactor.verification.reader_kernels import (
    HAS_KEY,
    Int64Array,
    LatestOffsets,
    Secret,
)
from compactor.verification.reader_log import READERS_BITS, Batches, LogReader, Records, decoded
from compactor.verification.reader_slices import END, NOTHING, Cursor, DataLeft, OffsetSlice
from compactor.verification.reader_transactions import BoolArray, ConsumerView, MarkerView
from compactor.verification.rewritten_indexes import RewrittenIndexes, TxnIndexes
from storage.file_names import LOG, Segment, file_name
from storage.files.files import Files
from storage.formats import legacy_messages
from storage.formats.batch_header import (
    CONTROL,
    LOG_APPEND_TIME,
    MAGIC,
)
from storage.formats.control_record import decode_type
from storage.formats.java_text import through_java
from storage.formats.record import Record
from storage.log import segment_reader


class AppendedRecords:
    """Appended records: each is kept, or superseded, or a tombstone that may have gone."""

    def __init__(self, after: Side, bounds: RemovalBounds, secret: Secret, clock: LogClock) -> None:
        self._after, self._bounds, self._secret, self._clock = after, bounds, secret, clock
        start, end = after.log_start_offset, bounds.log_end_offset
        appended = clock.evidence.reported.appended
        self._missing = {a.offset: a for a in appended if a.offset >= max(start, end)}
        self._latest = {a.key: a.offset for a in appended}

    def note(self, offsets: Int64Array) -> None:
        """Note records of the log after."""
        if self._missing:
            for offset in offsets.tolist():
                self._missing.pop(offset, None)

    def _note_unreached(self) -> None:
        """Meet those that no cleaning has reached, which nobody else reads."""
        listing = self._after.listing
        unreached = [s for s in listing.segments if s.base_offset >= self._bounds.rewritten_end]
        if self._missing:
            for _, records in LogReader(listing.path, unreached, self._secret).chunks():
                self.note(records.offsets)

    def findings(self) -> Iterator[Finding]:
        """What is gone without a reason. To be called at the end. CorruptFileError."""
        self._note_unreached()
        evidence, path = self._clock.evidence, self._after.listing.path
        reported_end = evidence.reported.log_end
        if evidence.reported.truncated_to is not None:
            reported_end = None  # records that were cleaned away no longer say where it ends
        if reported_end is not None and self._after.log_end_offset < reported_end:
            problem = (
                f"log end offset {self._after.log_end_offset}, by the last report {reported_end}"
            )
            yield unexplained(path, 0, problem)
        now_ms = evidence.now_ms or self._clock.as_of_ms
        may_expire = not evidence.is_accounted_for and evidence.allows_expiry(now_ms)
        for offset, one in sorted(self._missing.items()):
            if offset < self._bounds.end:
                is_superseded = one.key is None or self._latest[one.key] > offset
                is_expired = one.is_tombstone and (may_expire or offset < evidence.expired_below())
                if is_superseded or is_expired:
                    continue
            problem = f"offset {offset}: a record that {named('log append')} has added is gone"
            yield unexplained(path, 0, f"{problem} without a reason")


_BATCH_FIELDS = (
    "magic",
    "base_offset",
    "last_offset",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)


class PartitionProof:
    """Compares one partition with its copy from before."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        bounds: RemovalBounds,
        secret: Secret,
        clock: LogClock,
        log_start: LogStartCheck,
    ) -> None:
        before, after = sides
        self._before, self._after, self._bounds = before, after, bounds
        self._header_check = HeaderCheck(clock)
        reached = [_reached(side, bounds) for side in sides]
        self._readers = [
            LogReader(side.listing.path, segments, secret)
            for side, segments in zip(sides, reached, strict=True)
        ]
        self._indexes = RewrittenIndexes(before, after, reached[1])
        self._txn_indexes = TxnIndexes(before.aborted(), bounds.log_end_offset)
        self._reached = reached[1]
        self._latest = LatestOffsets()
        self._superseding_end = min(bounds.end, clock.evidence.superseding_end)
        self._had_to = bounds.log_end_offset  # what is there from here on was appended since
        self._overdue = Overdue(before, bounds, clock, self._latest, self._readers[1].place)
        self._markers = MarkerView()
        self._data_left = DataLeft()
        self._last_batches = LastBatches(before.producers.entries)
        first = [s.base_offset for s in after.listing.segments[:1]]
        self._deleted_to = min([bounds.log_start_offset, *first])  # with their segments
        self.proof = Proof()
        horizons = self._header_check.horizons
        books = Books(
            before=before,
            reader=self._readers[0],
            bounds=bounds,
            latest=self._latest,
            horizons=horizons,
            deleted_to=self._deleted_to,
        )
        self._gone = GoneRecords(books, clock, log_start, self.proof)
        self._log_start = log_start
        self._appended = AppendedRecords(after, bounds, secret, clock)

    def run(self) -> Proof:
        """Compare. Raise CorruptFileError where one of the logs is damaged."""
        self._read_before()
        old, new = (
            Cursor(reader, _consumer(side, self._bounds.log_start_offset))
            for reader, side in zip(self._readers, (self._before, self._after), strict=True)
        )
        taken_to = 0
        while taken_to < END and not self.proof.is_full:
            old.fill(taken_to)
            new.fill(taken_to)
            taken_to = min(old.covered_to, new.covered_to)
            self._compare(old.take(taken_to), new.take(taken_to))
        self._gone.finish()
        self._note(self._log_start.findings())
        self._note(self._appended.findings())
        self.proof.horizon_moments = len(self._header_check.horizons.set)
        self.proof.unreported_moments = len(self._header_check.horizons.unreported)
        self._note_problems(self._header_check.horizons.problems(self._bounds.may_go_on))
        self._note(self._overdue.findings(is_disputed=self.proof.disputed_batches > 0))
        self._note(self._indexes.finish())
        end, start = self._bounds.rewritten_end, self._bounds.log_start_offset
        self._note(self._txn_indexes.problems(self._after, self._reached, start, end))
        return self.proof

    def _read_before(self) -> None:
        """First pass: the latest offset of each key that may supersede, and the markers."""
        view = _consumer(self._before, self._bounds.log_start_offset)
        for batches, records in self._readers[0].chunks():
            aborted = view.of(batches)
            self._markers.read(batches)
            self._overdue.note(batches)
            is_control = batches["attributes"] & CONTROL != 0
            counts = (records.kinds & HAS_KEY != 0) & (records.offsets < self._superseding_end)
            counts &= ~(aborted | is_control)[records.batches]
            self._latest.put(records.keys[counts], records.offsets[counts])
        for segment in self._before.listing.segments:
            if segment.base_offset >= self._bounds.rewritten_end:
                self._read_markers(self._log_path(segment), self._before.listing.access)
        self.proof.keys = self._latest.count
        self._read_appended()

    def _read_appended(self) -> None:
        """Read what was appended since, which may supersede older records."""
        if self._after.log_end_offset <= self._had_to:
            return
        view = _consumer(self._after, self._bounds.log_start_offset)
        for batches, records in self._readers[1].chunks():
            hidden = view.of(batches) | (batches["attributes"] & CONTROL != 0)
            counts = (records.kinds & HAS_KEY != 0) & (records.offsets >= self._had_to)
            counts &= (records.offsets < self._bounds.end) & ~hidden[records.batches]
            self._latest.put(records.keys[counts], records.offsets[counts])

    def _read_markers(self, path: str, files: Files) -> None:
        for position, header in segment_reader.read_batch_headers(path, files=files):
            if header.is_transactional and not header.is_control:
                self._markers.data(header.producer_id, header.base_offset)
            elif header.is_control and header.records_count:
                entry = files.read_range(path, position, header.size_bytes)
                records = legacy_messages.decode_records(entry, header, path, position)
                kind = decode_type(records[0].key)
                self._markers.marker(header.producer_id, header.base_offset, kind)

    def _compare(self, old: OffsetSlice | None, new: OffsetSlice | None) -> None:
        all_old, all_new = old or NOTHING, new or NOTHING
        old, new = all_old.below(self._had_to), all_new.below(self._had_to)
        self.proof.gone[TRUNCATED] += len(all_old.records.offsets) - len(old.records.offsets)
        self._appended.note(all_new.records.offsets[len(new.records.offsets) :])
        self.proof.records_before += len(all_old.records.offsets)
        self.proof.records_after += len(all_new.records.offsets)
        at = np.searchsorted(old.records.offsets, new.records.offsets)
        at = np.minimum(at, max(len(old.records.offsets) - 1, 0))
        if len(old.records.offsets):
            matched = old.records.offsets[at] == new.records.offsets
        else:
            matched = np.zeros(len(at), np.bool_)
        self._check_new(new, ~matched)
        self._check_kept(old, new, at[matched], matched)
        is_gone = np.ones(len(old.records.offsets), np.bool_)
        is_gone[at[matched]] = False
        data_left = self._data_left.before_markers(old, new)
        self._count_markers(old, is_gone, data_left)
        self._gone.check(old, is_gone)
        self._check_batches(old, new)
        self._overdue.check_batches(new.batches)
        self._note_problems(self._header_check.check(old, new, data_left))
        self._note(self._indexes.take(all_new.batches))
        self._txn_indexes.note(all_new.batches)

    def _note(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.proof.take(finding)

    def _note_problems(self, problems: Iterable[BatchProblem]) -> None:
        for place, problem in problems:
            path = self._readers[1].path(place.segment)
            self.proof.take(difference(path, place.position, problem))

    def _check_new(self, new: OffsetSlice, is_new: BoolArray) -> None:
        for row in np.flatnonzero(is_new)[: MAX_FINDINGS + 1].tolist():
            offset = int(new.records.offsets[row])
            self._find(new, row, f"offset {offset}: a record that was not there before")

    def _check_kept(
        self, old: OffsetSlice, new: OffsetSlice, old_rows: Int64Array, is_kept: BoolArray
    ) -> None:
        """Records on both sides: of the same content, and seen by the same readers."""
        new_rows = np.flatnonzero(is_kept)
        was, now = old.records.of(old_rows), new.records.of(new_rows)
        old_batch, new_batch = old.all_batches[was.batches], new.all_batches[now.batches]
        wrong = (was.contents != now.contents).any(axis=1)
        wrong |= (was.timestamps != now.timestamps) | (was.kinds != now.kinds)
        for name in ("producer_id", "producer_epoch", "leader_epoch"):
            wrong |= old_batch[name] != new_batch[name]
        wrong |= (old_batch["attributes"] ^ new_batch["attributes"]) & READERS_BITS != 0
        wrong |= _sequences(old_batch, was) != _sequences(new_batch, now)
        for row in np.flatnonzero(wrong).tolist():
            if self.proof.is_full:
                return
            difference = self._difference(old_batch[row], new_batch[row], int(was.offsets[row]))
            if difference:
                what = f"offset {was.offsets[row]}: {difference} not what it was"
                self._find(new, int(new_rows[row]), what)
        seen = old.aborted[was.batches] != new.aborted[now.batches]
        for row in np.flatnonzero(seen)[: MAX_FINDINGS + 1].tolist():
            is_aborted = bool(new.aborted[now.batches[row]])
            what = "now hidden from" if is_aborted else "now shown to"
            problem = f"offset {was.offsets[row]}: {what} readers of committed records"
            self._find(new, int(new_rows[row]), problem)
        self._overdue.check(Kept(was, old_batch, new_batch, old.aborted[was.batches]))

    def _difference(self, was: np.void, now: np.void, offset: int) -> str:
        """What of a record is not the same; nothing where only the way it is written differs."""
        for name in ("producer_id", "producer_epoch", "leader_epoch"):
            if was[name] != now[name]:
                return f"{name.replace('_', ' ')} {now[name]} (before {was[name]}) is"
        one, other = (
            next(r for r in decoded(reader.path(int(b["segment"])), b) if r.offset == offset)
            for reader, b in zip(self._readers, (was, now), strict=True)
        )
        if was["magic"] != MAGIC and one.timestamp == -1 and now["attributes"] & LOG_APPEND_TIME:
            one = one._replace(timestamp=other.timestamp)  # v0 has none, v2 only that of the batch
        for name in Record._fields[1:]:
            if _as_read(one, name) != _as_read(other, name):
                return f"{name} is" if name != "headers" else "headers are"
        if (was["attributes"] ^ now["attributes"]) & READERS_BITS:
            return "kind of batch is"
        is_moved = _sequence(was, offset) != _sequence(now, offset)
        return "sequence number is" if is_moved else ""

    def _count_markers(self, old: OffsetSlice, is_gone: BoolArray, data_left: Int64Array) -> None:
        """A marker that is gone had no data left."""
        disputed = self._markers.of(old.batches) != old.own_aborted
        disputed &= old.batches["base_offset"] >= self._bounds.log_start_offset
        self.proof.disputed_batches += int(disputed.sum())
        is_control = old.all_batches["attributes"] & CONTROL != 0
        rows = old.records.batches
        gone_rows = set(rows[is_gone & is_control[rows]].tolist())
        for row in np.flatnonzero(old.batches["attributes"] & CONTROL).tolist():
            if old.first + row in gone_rows:
                self._gone.check_marker(old.batches[row], int(data_left[row]))

    def _check_batches(self, old: OffsetSlice, new: OffsetSlice) -> None:
        """No batch is new, and none is gone that is the last of its producer (C-10.4)."""
        was, now = old.batches, new.batches
        modern = now[now["magic"] == MAGIC]
        at = np.searchsorted(was["base_offset"], modern["base_offset"])
        known = was[np.minimum(at, len(was) - 1)] if len(was) else np.zeros(len(at), was.dtype)
        is_known = (known["attributes"] ^ modern["attributes"]) & READERS_BITS == 0
        for name in _BATCH_FIELDS:
            is_known &= known[name] == modern[name]
        for batch in modern[~is_known]:
            if not _is_upgraded(batch, old.all_batches):
                problem = f"offset {batch['base_offset']}: there was no such batch before"
                self.proof.take(difference(*self._readers[1].place(batch), problem))
        is_gone = ~np.isin(was["base_offset"], now["base_offset"])
        is_gone &= (was["producer_id"] >= 0) & (was["base_offset"] >= self._deleted_to)
        for batch in was[is_gone]:
            if self._last_batches.has(batch):
                problem = (
                    f"offset {batch['base_offset']}: the last batch of producer "
                    f"{batch['producer_id']} is gone, and its sequence number with it"
                )
                self.proof.take(difference(*self._readers[0].place(batch), problem))

    def _find(self, where: OffsetSlice, row: int, problem: str) -> None:
        """Note what is wrong with a record of the log after."""
        batch = where.all_batches[where.records.batches[row]]
        self.proof.take(difference(*self._readers[1].place(batch), problem))

    def _log_path(self, segment: Segment) -> str:
        return os.path.join(self._before.listing.path, file_name(segment.base_offset, LOG))


def _reached(side: Side, bounds: RemovalBounds) -> list[Segment]:
    """The segments that the cleaning has reached."""
    return [s for s in side.listing.segments if s.base_offset < bounds.rewritten_end]


def _consumer(side: Side, log_start_offset: int) -> ConsumerView:
    return ConsumerView(side.aborted(), side.ends(), log_start_offset)


def _sequences(batch: Batches, records: Records) -> Int64Array:
    """The sequence number of each record; -1 where its producer is not idempotent (F-4.6)."""
    first = batch["base_sequence"]
    sequences: Int64Array = (first + records.offsets - batch["base_offset"]) % 2**31
    return np.where(first < 0, -1, sequences)


def _sequence(batch: np.void, offset: int) -> int:
    first = int(batch["base_sequence"])
    return -1 if first < 0 else (first + offset - int(batch["base_offset"])) % 2**31


def _as_read(record: Record, name: str) -> object:
    """A field of a record; keys of headers as Java reads them, which is how Kafka keeps them."""
    if name != "headers":
        return getattr(record, name)
    return [(through_java(key), value) for key, value in record.headers]


def _is_upgraded(batch: np.void, before: Batches) -> bool:
    """Whether a batch of v2 can be what became of a legacy one (C-11.12)."""
    at = int(np.searchsorted(before["base_offset"], batch["base_offset"], side="right")) - 1
    if at < 0 or before[at]["magic"] == MAGIC or batch["producer_id"] != -1:
        return False
    return bool(batch["last_offset"] <= before[at]["last_offset"])
