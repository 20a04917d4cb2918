"""What our engine does to logs of a stopped broker: opens them, says what it finds, appends."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor import Log, LogManager, ManagerOptions
from storage.codecs.compression import Codec
from storage.formats.control_record import KEY, MARKER_VALUE, ControlType
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.manager_options import BY_HAND
from storage.log.producer_state_entry import AppendOrigin, ProducerStateEntry
from storage.log.validation import AppendRequest
from tests.broker.requests import ActiveProducer

Partition = tuple[str, int]
Entry = tuple[bytes, bytes]  # key and value
IDEMPOTENT, COMMITTED, ABORTED, IN_SHARED, HANGING = range(9_000, 9_005)  # producer ids
BATCH = 10
COORDINATOR_EPOCH = 3


@dataclass(frozen=True, slots=True)
class Opened:
    """A log as our engine found it."""

    log_end: int
    epochs: list[tuple[int, int]]  # with the offset at which each begins
    producers: list[ActiveProducer]


@dataclass(frozen=True, slots=True)
class Written:
    """What our engine appended to a log: in its order, by offset; None is a marker."""

    first_offset: int
    entries: list[Entry | None]
    aborted: frozenset[int]  # offsets


def manager_of(log_dirs: Sequence[Path]) -> LogManager:
    """Without tasks; loads all logs when it is started."""
    return LogManager([str(path) for path in log_dirs], ManagerOptions(intervals=BY_HAND))


def opened(log: Log) -> Opened:
    epochs = [(entry.epoch, entry.start_offset) for entry in log.epochs.entries]
    producers = log.producers.producers
    return Opened(log.log_end_offset, epochs, sorted(_told(each) for each in producers))


def epochs_on_disk(log_dirs: Sequence[Path], name: str) -> list[tuple[int, int]]:
    """What the checkpoint of a log says, read without any code of ours (F-13.1)."""
    (partition,) = [path / name for path in log_dirs if (path / name).is_dir()]
    lines = (partition / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    return [(int(epoch), int(offset)) for epoch, offset in map(str.split, lines)]


def _told(known: ProducerStateEntry) -> ActiveProducer:
    """In the words of DescribeProducers."""
    return ActiveProducer(
        producer_id=known.producer_id,
        epoch=known.epoch,
        last_sequence=known.last_sequence,
        last_timestamp=known.last_timestamp,
        coordinator_epoch=known.coordinator_epoch,
        txn_start_offset=-1 if known.txn_first_offset is None else known.txn_first_offset,
    )


def entries(what: str, count: int) -> list[Entry]:
    return [(b"key-%d" % (i % 7), f"{what} {i}".encode()) for i in range(count)]


def made(what: Sequence[Entry], options: BatchOptions, codec: Codec = Codec.NONE) -> bytes:
    """A batch as a producer makes it."""
    now_ms = time.time_ns() // 1_000_000
    records = [Record(i, now_ms, key, value) for i, (key, value) in enumerate(what)]
    return encode_batch(records, codec, options)


def of_producer(producer_id: int, sequence: int, in_txn: bool = False) -> BatchOptions:
    return BatchOptions(
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=in_txn,
    )


class EngineWriter:
    """Appends to one log as its leader, and keeps in mind what."""

    def __init__(self, log: Log) -> None:
        self._log, self._first = log, log.log_end_offset
        self._entries: list[Entry | None] = []
        self._aborted: set[int] = set()
        self._epoch = log.epochs.latest or 0

    def append(
        self, what: Sequence[Entry], options: BatchOptions | None = None, codec: Codec = Codec.NONE
    ) -> range:
        """One batch; the offsets that it has to get."""
        request = AppendRequest(leader_epoch=self._epoch)
        batch = made(what, BatchOptions() if options is None else options, codec)
        self._log.append_as_leader(batch, request)
        return self._noted(what)

    def end(self, producer_id: int, control: ControlType) -> None:
        """A marker as a coordinator has it written."""
        now_ms = time.time_ns() // 1_000_000
        value = MARKER_VALUE.pack(0, COORDINATOR_EPOCH)
        marker = Record(0, now_ms, KEY.pack(0, control), value)
        options = BatchOptions(
            producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
        )
        origin = AppendOrigin.COORDINATOR
        request = AppendRequest(origin=origin, leader_epoch=self._epoch, transaction_version=0)
        self._log.append_as_leader(encode_batch([marker], options=options), request)
        self._noted([None])

    def abort(self, offsets: range, producer_id: int) -> None:
        self.end(producer_id, ControlType.ABORT)
        self._aborted.update(offsets)

    def roll(self) -> None:
        self._log.roll()

    def written(self) -> Written:
        self._log.follow_end()
        return Written(self._first, self._entries, frozenset(self._aborted))

    def _noted(self, what: Sequence[Entry | None]) -> range:
        first = self._first + len(self._entries)
        self._entries += what
        return range(first, first + len(what))


def write_everything(log: Log) -> Written:
    """Every codec, an idempotent producer, a transaction that is committed and one that is not."""
    writer = EngineWriter(log)
    for codec in Codec:
        writer.append(entries(f"codec {codec.name}", 20), codec=codec)
    writer.roll()
    writer.append(entries("idempotent", BATCH), of_producer(IDEMPOTENT, 0))
    committed = of_producer(COMMITTED, 0, in_txn=True)
    writer.append(entries("committed", BATCH), committed, Codec.ZSTD)
    aborted = writer.append(entries("aborted", BATCH), of_producer(ABORTED, 0, in_txn=True))
    writer.append(entries("idempotent again", BATCH), of_producer(IDEMPOTENT, BATCH), Codec.LZ4)
    writer.end(COMMITTED, ControlType.COMMIT)
    writer.roll()
    writer.append(entries("between", 5))
    writer.abort(aborted, ABORTED)
    writer.append(entries("at the end", 5))
    return writer.written()


def write_shared(log: Log) -> Written:
    """Behind a transaction of a client's that is open."""
    writer = EngineWriter(log)
    writer.append(entries("of the engine", 5))
    writer.append(entries("idempotent", BATCH), of_producer(IN_SHARED, 0))
    return writer.written()


def write_hanging(log: Log) -> Written:
    """A transaction that no coordinator knows of, and records behind it."""
    writer = EngineWriter(log)
    writer.append(entries("hanging", BATCH), of_producer(HANGING, 0, in_txn=True))
    writer.append(entries("behind", 5))
    return writer.written()


def write_plain(log: Log) -> Written:
    writer = EngineWriter(log)
    writer.append(entries("recovered", 5))
    return writer.written()
