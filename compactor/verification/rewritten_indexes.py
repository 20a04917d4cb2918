"""The index files of segments that a cleaning has written, against the batches that stand in them.

Kafka rebuilds them: an offset entry is the last offset and the position of a batch, a time entry
the largest timestamp so far and the last offset of the first batch that has it. Their number
depends on `index.interval.bytes`, which is unknown. An entry of a `.txnindex` is one of the log
before, in the segment that its marker stands in; it is kept as long as the log before had a batch
of its transaction.
Rules: compaction C-8.8, C-13.2, C-14.2.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compactor.log_checks.findings import Finding, difference, finding_of
from compactor.verification.reader_bounds import Side, is_same
from compactor.verification.reader_kernels import Int64Array
from compactor.verification.reader_log import Batches
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, Segment, file_name
from storage.formats import offset_index, time_index, txn_index
from storage.formats.batch_header import CONTROL, TRANSACTIONAL
from storage.formats.txn_index import AbortedTxn

_FACTS = ("position", "last_offset", "max_timestamp")


class RewrittenIndexes:
    """Takes the batches of the log after, in their order; one segment of them is held at a time."""

    def __init__(self, before: Side, after: Side, segments: Sequence[Segment]) -> None:
        """segments: those of the log after that the cleaning has reached."""
        self._paths = before.listing.path, after.listing.path
        self._files = after.listing.access
        self._segments = segments
        self._segment = -1
        self._facts: list[Batches] = []

    def take(self, batches: Batches) -> Iterator[Finding]:
        """Take in batches of one segment; yield what is wrong with the indexes of those before."""
        if not len(batches):
            return
        segment = int(batches["segment"][0])
        if segment != self._segment:
            yield from self.finish()
            self._segment = segment
        self._facts.append(batches[list(_FACTS)])

    def finish(self) -> Iterator[Finding]:
        """Check the indexes of the last segment that batches were taken of."""
        facts, self._facts = self._facts, []
        if not facts:
            return
        base_offset = self._segments[self._segment].base_offset
        logs = [os.path.join(path, file_name(base_offset, LOG)) for path in self._paths]
        if is_same(*logs):  # left in place
            return
        columns = [np.concatenate([some[name] for some in facts]) for name in _FACTS]
        try:
            yield from self._check(base_offset, *columns)
        except CorruptFileError as error:
            yield finding_of(error)
        except FileNotFoundError as error:  # which a broker makes anew, and `verify` reports
            if not str(error.filename).startswith(self._paths[1]):
                raise

    def _check(
        self, base_offset: int, positions: Int64Array, last: Int64Array, times: Int64Array
    ) -> Iterator[Finding]:
        path = os.path.join(self._paths[1], file_name(base_offset, INDEX))
        entries = offset_index.read(path, self._files)
        at = entries["position"].astype(np.int64)
        row = np.minimum(np.searchsorted(positions, at), len(positions) - 1)
        offsets = entries["relative_offset"].astype(np.int64) + base_offset
        wrong = np.flatnonzero((positions[row] != at) | (last[row] != offsets))
        if len(wrong):
            i = int(wrong[0])
            entry = f"entry (offset {offsets[i]}, position {at[i]})"
            problem = f"{entry} is not the last offset and the position of a batch"
            yield difference(path, i * offset_index.ENTRY.itemsize, problem)
        path = os.path.join(self._paths[1], file_name(base_offset, TIME_INDEX))
        entries = time_index.read(path, self._files)
        yield from _check_times(path, entries, base_offset, last, times)


def _check_times(
    path: str, entries: time_index.Entries, base_offset: int, last: Int64Array, times: Int64Array
) -> Iterator[Finding]:
    before = np.concatenate([[-1], np.maximum.accumulate(times)[:-1]])
    is_first = times > before  # of those with the largest timestamp so far
    offsets = entries["relative_offset"].astype(np.int64) + base_offset
    row = np.minimum(np.searchsorted(last, offsets), len(last) - 1)
    fits = (last[row] == offsets) & is_first[row] & (times[row] == entries["timestamp"])
    if not is_first.any():  # nothing has a timestamp: the one entry there may be says so
        fits |= (entries["timestamp"] == -1) & (offsets == base_offset)
    wrong = np.flatnonzero(~fits)
    if len(wrong):
        i = int(wrong[0])
        problem = (
            f"entry (timestamp {entries['timestamp'][i]}, offset {offsets[i]}) is not that of the "
            "first batch with the largest timestamp so far"
        )
        yield difference(path, i * time_index.ENTRY.itemsize, problem)


@dataclass(slots=True)
class _Known:
    """An entry of the log before."""

    txn: AbortedTxn
    has_data: bool = False  # after the cleaning: so that its records have to stay hidden


class TxnIndexes:
    """Holds the `.txnindex` entries after against those before."""

    def __init__(self, before: Sequence[Sequence[AbortedTxn]], log_end_offset: int) -> None:
        """Take the entries of the log before.

        before: of each segment. log_end_offset: where that log ended; what ends at it or later was
        appended since.
        """
        self._log_end_offset = log_end_offset
        self._known = [_Known(txn) for entries in before for txn in entries]
        self._of_producer: dict[int, list[_Known]] = {}  # by rising last offset
        for known in sorted(self._known, key=_last_offset):
            self._of_producer.setdefault(known.txn.producer_id, []).append(known)

    def note(self, batches: Batches) -> None:
        """Note batches of the log after.

        An entry goes with the last data of its transaction: in the cleaning after the one that took
        the data, of which there may have been several.
        """
        data = batches[batches["attributes"] & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL]
        producers, offsets = data["producer_id"].tolist(), data["base_offset"].tolist()
        for producer_id, offset in zip(producers, offsets, strict=True):
            known = self._of_producer.get(producer_id, [])
            at = bisect_left(known, offset, key=_last_offset)
            if at < len(known) and known[at].txn.first_offset <= offset:
                known[at].has_data = True

    def problems(
        self, after: Side, segments: Sequence[Segment], log_start_offset: int, end: int
    ) -> Iterator[Finding]:
        """segments: those of the log after that the cleaning has reached, up to end."""
        wanted = [k for k in self._known if log_start_offset <= k.txn.last_offset < end]
        bases = [segment.base_offset for segment in segments]
        done = 0
        for base_offset, stop, entries in zip(
            bases, [*bases[1:], end], after.aborted(), strict=False
        ):
            path = os.path.join(after.listing.path, file_name(base_offset, TXN_INDEX))
            for number, txn in enumerate(entries):
                position = number * txn_index.ENTRY.size
                if not base_offset <= txn.last_offset < stop:
                    yield difference(path, position, f"{_words(txn)}: ends in another segment")
                    return
                if txn.last_offset >= self._log_end_offset:
                    continue
                at = done
                while at < len(wanted) and wanted[at].txn != txn:
                    at += 1
                if at == len(wanted):
                    yield difference(
                        path, position, f"{_words(txn)}: no such entry was there before"
                    )
                    return
                yield from _missing(wanted[done:at], path, position)
                done = at + 1
            behind = done
            while behind < len(wanted) and wanted[behind].txn.last_offset < stop:
                behind += 1
            yield from _missing(wanted[done:behind], path, len(entries) * txn_index.ENTRY.size)
            done = behind


def _last_offset(known: _Known) -> int:
    return known.txn.last_offset


def _missing(skipped: Sequence[_Known], path: str, position: int) -> Iterator[Finding]:
    for known in skipped:
        if known.has_data:
            problem = f"{_words(known.txn)}: is missing, and some of its data is left"
            yield difference(path, position, problem)


def _words(txn: AbortedTxn) -> str:
    return (
        f"aborted transaction of producer {txn.producer_id} from offset {txn.first_offset} to "
        f"{txn.last_offset}, last stable offset {txn.last_stable_offset}"
    )
