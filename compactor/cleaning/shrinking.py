"""How much smaller the batches of a log get when records go from them: tried with some of them.

What is left of a compressed batch is compressed again, and shrinks by less than what went from it:
records whose key comes again soon are as a rule also alike, and take next to no room.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from cleaner_jobs.messages import Stretch
from storage.codecs.compression import Codec, compress
from storage.files.files import Files
from storage.formats import record as record_format
from storage.formats.batch_header import BATCH_HEADER_BYTES, MAGIC
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader, decode_records
from storage.log.segment_reader import read_batches

MOST_RECORDS = 100_000
FEWEST_BATCHES = 64  # if there are as many stretches


class _Tried:
    """A batch: what it takes, and what is left for certain: of each key the last record."""

    def __init__(self, header: BatchHeader, records: Sequence[Record]) -> None:
        self.header, self.bytes, self.records = header, header.size_bytes, len(records)
        self.left = list({record.key: record for record in reversed(records)}.values())[::-1]

    def bytes_of(self, records: Sequence[Record]) -> int:
        if not records:
            return 0
        base, base_ms = self.header.base_offset, self.header.base_timestamp
        payload = b"".join(record_format.encode(record, base, base_ms) for record in records)
        return BATCH_HEADER_BYTES + len(compress(Codec(self.header.codec), payload))


class Shrinking:
    """Batches of a log, of format v2, from which records are taken to see what is left."""

    def __init__(self, tried: Sequence[_Tried]) -> None:
        self._tried = tried
        self._bytes = sum(batch.bytes for batch in tried)
        self._records = sum(batch.records for batch in tried)
        self._again = self._records - sum(len(batch.left) for batch in tried)

    def bytes_share(self, records_share: float) -> float | None:
        """What share of the bytes goes with so many of the records: first those whose key comes
        again in their batch, then any. None where there is no such batch.
        """
        if not self._records:
            return None
        chance = np.random.default_rng(self._records)
        again = self._again / self._records
        more = (records_share - again) / (1 - again)
        left = sum(
            batch.bytes_of(
                [record for record in batch.left if more <= 0 or chance.random() >= more]
            )
            for batch in self._tried
        )
        gone = max(0.0, 1 - left / self._bytes)
        return gone if more >= 0 else gone * records_share / again


def shrinking_of(stretches: Sequence[Stretch], files: Files) -> Shrinking:
    """Take the first batch of some of the stretches. Raise CorruptFileError and OSError."""
    tried: list[_Tried] = []
    step = max(1, len(stretches) // FEWEST_BATCHES)
    for stretch in stretches[::step]:
        path = stretch.source.path
        batches = read_batches(path, files=files, start=stretch.start)
        for position, header, batch in islice(batches, 1):
            if header.magic == MAGIC and not header.is_control and header.records_count:
                tried.append(_Tried(header, decode_records(batch, header, path, position)))
        if sum(batch.records for batch in tried) > MOST_RECORDS:
            break
    return Shrinking(tried)
