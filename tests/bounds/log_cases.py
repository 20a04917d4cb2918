"""One case of the storage engine and its tables: a log is opened, and every kernel goes over it.

The log is one whose bytes lie. It is recovered, on an overlay and then for good, looked up, read,
appended to and made a table of; the batches that are appended lie as well.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import pyarrow as pa

from compactor import SCHEMA, Batching, Log, LogOptions, append_table, read_table
from storage.codecs.compression import Codec
from storage.errors import LogCompactionError
from storage.file_names import LOG, file_name
from storage.formats import batch_windows
from storage.formats.batch_windows import Buffers
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log import kernels, segment_recovery
from storage.log.errors import LogError
from storage.log.file_records import next_offset
from storage.log.lazy_kernels import COMPILED, KernelBuffers
from storage.log.loading import LoadingState, rehearsed
from storage.log.log_config import LogConfig
from storage.log.scheduler import ManualScheduler
from storage.log.validation import AppendRequest
from tests.bounds.lying_batches import lie

NOW_MS = 1_700_000_000_000
WINDOW_BYTES = 400

Ending = tuple[str, str]


def _exact_put(scratch: KernelBuffers, data: bytes | bytearray | memoryview) -> memoryview:
    """As Scratch.put, with no more room than is needed."""
    scratch._make_room(len(data))
    there = scratch.view[: len(data)]
    there[:] = data
    return there


class LogCase:
    """One case, by its seed, of batches that were sound."""

    def __init__(self, seed: int, root: Path, batches: list[bytes]) -> None:
        self._chance, self._path = Random(seed), root / "engine-0"
        self._before = batches
        first = batches[0]
        self._base_offset = 0 if first[16] < 2 else int.from_bytes(first[:8], "big")

    def endings(self) -> Iterator[Ending]:
        """Go through the operations. Whatever else is raised here is a fault of ours."""
        self._path.mkdir()
        name = file_name(self._base_offset, LOG)
        (self._path / name).write_bytes(b"".join(lie(self._before, self._chance)))
        with (
            mock.patch.object(COMPILED, "kernels", kernels),
            mock.patch.object(KernelBuffers, "put", _exact_put),
            mock.patch.object(segment_recovery, "_WINDOW_BYTES", WINDOW_BYTES),
            mock.patch.object(batch_windows, "WINDOW_BYTES", WINDOW_BYTES),
            mock.patch.object(Buffers, "_room", lambda _, length, __: length),
            mock.patch.object(os, "fsync", lambda _: None),
        ):
            yield "table", self._ending(self._read_table)
            yield "rehearse", self._ending(lambda: rehearsed(str(self._path), self._options()))
            try:
                log = self._opened()
            except (LogError, LogCompactionError) as error:
                yield "open", type(error).__name__
                return
            yield "open", "sound"
            for what, work in (
                ("look up", self._look_up),
                ("append", self._append),
                ("append batches", self._append_batches),
                ("append a table", self._append_table),
                ("read", self._read),
            ):
                yield what, self._ending(lambda work=work: work(log))  # type: ignore[misc]
            log.close_handlers()
            yield "table again", self._ending(self._read_table)

    def _ending(self, stage: Callable[[], object]) -> str:
        try:
            stage()
        except (LogError, LogCompactionError) as error:
            return type(error).__name__
        return "sound"

    def _opened(self) -> Log:
        return Log.open(str(self._path), self._options())

    def _options(self) -> LogOptions:
        def clock() -> int:
            return NOW_MS

        return LogOptions(
            config=LogConfig(index_interval_bytes=self._chance.choice((1, 300, 4096))),
            clock=clock,
            scheduler=ManualScheduler(clock),
            state=LoadingState(is_clean=False),
        )

    def _look_up(self, log: Log) -> None:
        chance = self._chance
        start, end = log.log_start_offset, log.log_end_offset
        near = range(start, min(end, start + 40))
        for offset in (*near, *(chance.randrange(start, end + 2) for _ in range(20)), end):
            log.place_of(offset)
        for time in (0, 5, 77, chance.randrange(2**40), NOW_MS):
            try:
                log.offset_by_timestamp(time)
            except LogError:
                continue

    def _append(self, log: Log) -> None:
        for number in range(6):
            value = b"v" * self._chance.choice((0, 9, 900))
            batch = encode_batch([Record(n, NOW_MS + number, b"k", value) for n in range(3)])
            (sent,) = lie([batch], self._chance) if number % 2 else [batch]
            try:
                log.append_as_leader(sent, AppendRequest(leader_epoch=number // 3))
            except LogError:
                continue

    def _append_batches(self, log: Log) -> None:
        """Several by one call, of two producers and of none; some lie."""
        chance, sent, following = self._chance, list[bytes](), dict.fromkeys((-1, 70, 71), 0)
        for number in range(12):
            who = chance.choice((-1, -1, 70, 71))
            count = 1 + number % 2
            options = BatchOptions()
            if who > 0:
                options = BatchOptions(
                    producer_id=who, producer_epoch=0, base_sequence=following[who]
                )
            following[who] += count
            records = [Record(n, NOW_MS + number, b"k", b"v" * 30) for n in range(count)]
            sent.append(encode_batch(records, options=options))
        some = lie(sent, chance) if chance.random() < 0.5 else sent
        made = AppendRequest(is_made_for_log=chance.random() < 0.2)
        log.append_batches_as_leader(b"".join(some), made)

    def _append_table(self, log: Log) -> None:
        count = self._chance.randrange(1, 40)
        keys = [self._chance.choice((None, b"", b"key")) for _ in range(count)]
        values = [self._chance.choice((None, b"v" * 70)) for _ in range(count)]
        headers = [[{"key": "h", "value": b"1"}]] * count
        table = pa.table({"key": keys, "value": values}).append_column(
            "headers", pa.array(headers, SCHEMA.field("headers").type)
        )
        codec = self._chance.choice((Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.GZIP))
        append_table(log, table, Batching(codec=codec, batch_bytes=500))

    def _read(self, log: Log) -> None:
        at = log.log_start_offset
        while at < log.log_end_offset:
            after = next_offset(log.read(at, 600).read())
            if after is None or after <= at:
                return
            at = after

    def _read_table(self) -> None:
        table = read_table(self._path)
        assert np.all(np.diff(table["offset"].to_numpy()) > 0)
