"""One case: a log is scanned, its bytes change, and every kernel that reads them goes over it.

The columns and verdicts with which it is rewritten are those of the bytes as they were. What a
stage may end with is a problem that names file and byte, or an output that another reader reads.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from cleaner_jobs.inspection_counters import BY_GROUP, BY_KEY, BY_TOPIC, CountedRun
from cleaner_jobs.kernels.batch_comparison import sum_heads
from cleaner_jobs.messages import (
    ActiveProducer,
    LogRules,
    Part,
    Piece,
    RoundSettings,
    Source,
    Stretch,
    Verdict,
)
from cleaner_jobs.tasks import batch_rewriter, inspection, packed_batches, window_reader
from cleaner_jobs.tasks.inspection import Choices, count_hash_partition, count_stretches
from cleaner_jobs.tasks.map_capacity import find_map_end
from cleaner_jobs.tasks.resolve import resolve_hash_partition
from cleaner_jobs.tasks.rewrite_task import PieceContext, rewrite_piece
from cleaner_jobs.tasks.scan import scan_stretches
from cleaner_jobs.txn_batches import save_array
from cleaner_jobs.work_file import WorkFiles
from compactor.log_checks.batch_checks import SegmentCheck
from compactor.verification.reader_log import LogReader
from storage.errors import LogCompactionError
from storage.file_names import LOG, Segment, file_name
from storage.files.files import entry_of
from storage.files.local import LOCAL
from storage.formats import batch_windows, legacy_upgrade
from storage.formats.batch_columns import ABORTED_FOR_CLEANING, UNREAD
from storage.formats.batch_windows import Buffers
from tests.bounds.log_cases import LogCase
from tests.bounds.lying_batches import lie
from tests.bounds.made_batches import made, written_by_kafka
from tests.support.local_round import HASH_KEY, settings_in
from tests.support.reference_batch import decode, split

NOW_MS = 1_700_000_000_000
SMALL = {  # so that a buffer has no more room than what is in it
    (batch_windows, "WINDOW_BYTES"): 64,
    (batch_windows, "WINDOW_BATCHES"): 8,
    (batch_windows, "PAYLOAD_BYTES"): 64,
    (window_reader, "CHUNK_BYTES"): 400,
    (window_reader, "RUN_BATCHES"): 3,
    (window_reader, "CHUNK_PAYLOAD_BYTES"): 300,
    (inspection, "RUN_RECORDS"): 7,
    (packed_batches, "PACKED_BYTES"): 64,
    (packed_batches, "FILTERED_BYTES"): 300,
    (packed_batches, "KEPT_BYTES"): 1000,
    (legacy_upgrade, "UPGRADED_BYTES"): 64,
    (batch_rewriter, "OUTPUT_BYTES"): 64,
}

Ending = tuple[str, str]  # stage, and how it ended: sound, or the kind of problem


class ExactBuffers(Buffers):
    """Arrays that are no longer than they were asked for."""

    def _room(self, length: int, _held: int) -> int:
        return length


class _Scanned(NamedTuple):
    parts: tuple[Part, ...]
    verdicts: tuple[Verdict, ...]


class Case:
    """One case, by its seed."""

    def __init__(self, seed: int, root: Path, kafkas: bool) -> None:
        """kafkas: half of the logs are such as Kafka wrote."""
        self._chance, self._root = Random(seed), root
        settings = settings_in(root / "work", NOW_MS, dry_run=self._chance.random() < 0.1)
        self._settings: RoundSettings = settings
        self._files = 0
        if kafkas and self._chance.random() < 0.5:
            self._before = list(self._chance.choice(written_by_kafka()))
        else:
            self._before = made(self._chance)
        first = self._before[0]
        self._base_offset = 0 if first[16] < 2 else int.from_bytes(first[:8], "big")
        self._path = root / "orders-0" / file_name(self._base_offset, LOG)
        self._path.parent.mkdir(exist_ok=True)

    def endings(self) -> Iterator[Ending]:
        """Go through the stages. Whatever is raised here is a fault of ours."""
        self._write(self._before)
        scanned = self._scan()
        assert isinstance(scanned, _Scanned), scanned
        changed = lie(self._before, self._chance)
        self._write(changed)
        yield "rewrite", self._ending(lambda: self._rewrite(scanned))
        again = self._scan()
        if isinstance(again, _Scanned):
            yield "scan", "sound"
            yield "rewrite again", self._ending(lambda: self._rewrite(again))
        else:
            yield "scan", type(again).__name__
        yield "map end", self._ending(self._map_end)
        yield "inspect", self._inspect()
        yield "verify", "sound" if self._verify() else "findings"
        yield "reader", self._ending(self._read)
        yield from LogCase(self._chance.randrange(2**32), self._root, self._before).endings()

    def _ending(self, stage: Callable[[], object]) -> str:
        try:
            stage()
        except LogCompactionError as error:
            return type(error).__name__
        return "sound"

    def _write(self, batches: Sequence[bytes]) -> None:
        self._path.write_bytes(b"".join(batches))

    def _source(self) -> Source:
        path = str(self._path)
        return Source.of(path, self._base_offset, entry_of(LOCAL, path))

    def _stretch(self) -> Stretch:
        source, chance = self._source(), self._chance
        first_dirty = self._base_offset + chance.choice((0, 0, 3))
        map_end = chance.choice((2**62, 2**62, self._base_offset + 5))
        stretch = Stretch(
            0, 0, 0, 0, source.log_bytes, source, first_dirty, map_end, chance.choice((0, 2))
        )
        if chance.random() < 0.3:
            flags = chance.choice((UNREAD, ABORTED_FOR_CLEANING))
            ranges = [[7, self._base_offset + 2, self._base_offset + 20, flags]]
            stretch = stretch._replace(aborted_file=self._name("aborted"))
            save_array(stretch.aborted_file, np.array(ranges, np.int64))
        return stretch._replace(legacy_expired=chance.random() < 0.5)

    def _name(self, kind: str) -> str:
        self._files += 1
        return str(self._root / "work" / f"{self._files}.{kind}")

    def _scan(self) -> _Scanned | Exception:
        """Parts and verdicts of the log as it is; or why there are none."""
        stretch, path = self._stretch(), self._name("parts")
        found = list(scan_stretches([stretch], self._settings, path, ExactBuffers()))
        parts = tuple(part for part in found if isinstance(part, Part))
        for problem in found:
            if not isinstance(problem, Part):
                assert isinstance(problem[1], LogCompactionError), problem
                return problem[1]
        path = self._name("verdicts")
        with WorkFiles() as files, open(path, "wb", buffering=0) as out:
            verdicts = [
                resolve_hash_partition(parts, hash_partition, files, (out, path), ExactBuffers())
                for hash_partition in range(1 << stretch.hash_partition_bits)
            ]
        return _Scanned(parts, tuple(verdicts))

    def _inspect(self) -> str:
        """Count the log as it is: its records, and its keys or a part of each."""
        stretch, path, buffers = self._stretch(), self._name("counted"), ExactBuffers()
        choices = Choices(parts=[(0, self._chance.choice((BY_KEY, BY_GROUP, BY_TOPIC)))])
        found = list(count_stretches([stretch], self._settings, path, buffers, choices))
        runs = [run for run in found if isinstance(run, CountedRun)]
        for problem in found:
            if not isinstance(problem, CountedRun):
                assert isinstance(problem[1], LogCompactionError), problem
                return type(problem[1]).__name__
        with WorkFiles() as files:
            for hash_partition in range(1 << stretch.hash_partition_bits if runs else 0):
                count_hash_partition(runs, hash_partition, files, path, buffers)
        return "sound"

    def _rewrite(self, scanned: _Scanned) -> None:
        """By what was scanned then, the bytes that are there now."""
        source = self._source()
        *others, last = scanned.parts
        section = last.sections[-1]._replace(end=source.log_bytes, heads=self._heads())
        last = last._replace(sections=(*last.sections[:-1], section))
        piece = Piece(0, 0, 0, self._chance.choice((1, 2)), (*others, last), 0, (source,))
        producers = (ActiveProducer(7, 0, self._base_offset + 1), ActiveProducer(8, 3, None))
        rules = LogRules(
            0,
            str(self._path.parent),
            self._base_offset + self._chance.choice((4, 1000)),
            self._chance.choice((0, 1000, 2**62)),
            64,
            1 << 16,
            producers,
            scanned.verdicts,
        )
        with WorkFiles() as files:
            attempt = str(self._files)
            context = PieceContext(self._settings, attempt, files, ExactBuffers())
            written = rewrite_piece(piece, rules, context)
        if written.log_file:
            data = Path(written.log_file).read_bytes()
            assert len(data) == written.log_bytes
            for raw in split(data):
                decode(raw)

    def _heads(self) -> int:
        """Of what is there now, so that this is not what stops the rewrite."""
        data = np.fromfile(self._path, np.uint8)
        return int(sum_heads(data, 0, len(data))[0])

    def _map_end(self) -> None:
        find_map_end(
            [self._stretch()], self._chance.choice((2, 1000)), self._settings, ExactBuffers()
        )

    def _verify(self) -> bool:
        check = SegmentCheck(str(self._path), self._base_offset)
        check.run()
        return not check.findings

    def _read(self) -> None:
        segment = Segment(self._base_offset, self._path.stat().st_size, 0, 0, None, 0, 0)
        secret = np.uint64(HASH_KEY[0]), np.uint64(HASH_KEY[1])
        for _ in LogReader(str(self._path.parent), [segment], secret).chunks():
            pass
