"""A log as a library: appended to, read, rolled, closed and opened again."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from compactor import Log, LogOptions
from storage.codecs.compression import Codec
from storage.files.files import Files
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log import log_state
from storage.log.errors import (
    IllegalArgumentError,
    InvalidRecordError,
    KafkaError,
    KafkaStorageError,
    LogError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordValidationError,
    UnexpectedAppendOffsetError,
)
from storage.log.log_config import LogConfig
from storage.log.log_state import FetchIsolation
from storage.log.producer_state_entry import AppendOrigin
from storage.log.scheduler import ManualScheduler
from storage.log.validation import AppendRequest, message_set
from tests.storage.log.batches_for_tests import EDGE_BATCHES, batch
from tests.support.files.memory import MemoryFiles

NOW_MS = 1_700_000_000_000


def now_ms() -> int:
    return NOW_MS


def options(files: Files, config: LogConfig) -> LogOptions:
    return LogOptions(clock=now_ms, scheduler=ManualScheduler(now_ms), config=config, files=files)


@pytest.fixture
def log() -> Log:
    """The log of the edge cases of reads: log end 6, high watermark 4, every batch indexed."""
    config = LogConfig(index_interval_bytes=1)
    made = Log.open("/t-0", options(MemoryFiles(), config))
    for data in EDGE_BATCHES:
        made.append_as_follower(data, 0)
    made.update_high_watermark(4)
    return made


def offsets(log: Log, start: int, isolation: FetchIsolation) -> list[int]:
    records = log.read(start, 1000, isolation).records
    return [] if records is None else [b.base_offset for b in records.batches()]


def test_a_reader_sees_as_far_as_it_asked_for(log: Log) -> None:
    """EE-40, EE-41, EE-42, EE-43."""
    assert offsets(log, 0, FetchIsolation.LOG_END) == [0, 3, 4]
    assert offsets(log, 2, FetchIsolation.HIGH_WATERMARK) == [0, 3]
    committed = log.read(0, 1000, FetchIsolation.COMMITTED)
    assert committed.metadata == (0, 0, 0)
    assert committed.aborted == ()
    for start, place in ((4, (4, 0, 158)), (5, (4, 0, 158)), (6, (6, 0, 237))):
        found = log.read(start, 1000, FetchIsolation.HIGH_WATERMARK)
        assert (found.read(), found.metadata) == (b"", place)


def test_behind_a_refused_record_none_is_converted() -> None:
    """L-13: a record with headers, which format 1 does not have, is none of the records refused."""
    config = LogConfig(message_timestamp_before_max_ms=600)
    log = Log.open("/t-0", options(MemoryFiles(), config))
    late = Record(0, NOW_MS - 601, b"k", b"v")
    with_headers = Record(1, NOW_MS, b"k", b"v", ((b"h", None),))
    with pytest.raises(RecordValidationError) as refused:
        log.append_as_leader(encode_batch([late, with_headers]), AppendRequest(target_magic=1))
    assert refused.value.positions == (0,)
    with pytest.raises(IllegalArgumentError, match="headers"):
        log.append_as_leader(
            encode_batch([with_headers._replace(offset=0)]), AppendRequest(target_magic=1)
        )


def test_an_offset_outside_of_the_log_is_refused(log: Log) -> None:
    """EE-44, EE-45."""
    with pytest.raises(OffsetOutOfRangeError):
        log.read(7)
    assert log.increment_log_start(1)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(0)
    assert log.read(1).metadata.offset == 0


def test_a_high_watermark_within_a_batch_falls_to_its_start(log: Log) -> None:
    """EE-46, EE-48."""
    assert log.update_high_watermark(2) == 2
    assert log.offset_snapshot().high_watermark == (0, 0, 0)
    assert log.high_watermark == 0
    assert log.update_high_watermark(-5) == 0
    assert log.update_high_watermark(99) == 6


@pytest.mark.parametrize(
    ("time", "found"),
    [(-1, (-1, 6)), (-2, (-1, 0)), (-3, (40, 3)), (-7, (10, 0)), (0, (10, 0)), (35, (40, 3))],
)
def test_offsets_for_times(log: Log, time: int, found: tuple[int, int]) -> None:
    """EE-55, EE-56."""
    answer = log.offset_by_timestamp(time)
    assert answer is not None
    assert answer[:2] == found
    assert log.offset_by_timestamp(41) is None


HIGHEST = 2**63 - 1


def at(base_offset: int, data: bytes) -> bytes:
    """A batch at another offset, which its checksum does not cover."""
    return base_offset.to_bytes(8, "big") + data[8:]


@pytest.mark.parametrize("as_follower", [True, False])
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (at(HIGHEST, batch(0, 10)), IllegalArgumentError),
        (at(HIGHEST - 1, batch(0, 10, 20)), IllegalArgumentError),
        (at(HIGHEST - 1, batch(0, 10)) + at(HIGHEST, batch(0, 10)), IllegalArgumentError),
        (
            at(HIGHEST, message_set([Record(0, 10, b"k", b"v")], 1, Codec.NONE, None)),
            IllegalArgumentError,
        ),
        (at(HIGHEST, batch(0, 10, 20)), OffsetsOutOfOrderError),
        (at(HIGHEST - 1, batch(0, 10)) + at(HIGHEST, batch(0, 1, 2)), OffsetsOutOfOrderError),
        (batch(3, 10) + at(HIGHEST, batch(0, 10)), UnexpectedAppendOffsetError),
    ],
)
def test_offsets_as_given_go_up_to_the_highest_that_another_can_follow(
    data: bytes, error: type[LogError], as_follower: bool
) -> None:
    """L-18.5: the error is Kafka's, which has written the batch where it is IllegalArgument."""
    log = Log.open("/t-0", options(MemoryFiles(), LogConfig()))
    log.truncate_fully(HIGHEST - 5)
    raft = AppendRequest(origin=AppendOrigin.RAFT_LEADER)

    def append(data: bytes) -> None:
        if as_follower:
            log.append_as_follower(data, 0)
        else:
            log.append_as_leader(data, raft)

    if as_follower or data[16] == 2:  # a message has no leader epoch that a raft leader could check
        with pytest.raises(error):
            append(data)
    assert (log.log_end_offset, log.size_bytes, *log.epochs.entries) == (HIGHEST - 5, 0)
    append(at(HIGHEST - 1, batch(0, 10)))
    assert log.log_end_offset == HIGHEST


@pytest.mark.parametrize("index", ["7.index", "1.index", "1.timeindex", f"{7:020d}.txnindex"])
def test_an_index_goes_whose_log_is_not_there_by_its_twenty_digits(index: str) -> None:
    """L-25.2: another file of the same offset, in fewer digits, does not keep it."""
    files = MemoryFiles()
    Log.open("/t-0", options(files, LogConfig())).close()
    for name in (index, "1.log"):
        files.open_to_change(f"/t-0/{name}", create=True)
    Log.open("/t-0", options(files, LogConfig()))
    assert not files.exists(f"/t-0/{index}")
    assert files.exists(f"/t-0/{0:020d}.timeindex")


def test_a_roll_may_begin_further_on_and_never_before() -> None:
    """EE-123, L-21.1: as the roll for a batch that is too far away does."""
    log = Log.open("/t-0", options(MemoryFiles(), LogConfig()))
    log.append_as_follower(batch(0, 10), 0)
    assert log_state.roll(log._state, 50).base_offset == 50
    assert (log.log_end_offset, log.producers.map_end_offset) == (1, 50)
    with pytest.raises(KafkaError):
        log_state.roll(log._state, 20)


def test_a_closed_log_refuses_everything() -> None:
    """EE-165, L-24.2: closing twice is no error; after the files were let go there is no append."""
    log = Log.open("/t-0", options(MemoryFiles(), LogConfig()))
    log.close()
    log.close()
    log.close_handlers()
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(batch(0, NOW_MS))


def test_a_log_needs_neither_spark_nor_arrow_nor_a_kernel() -> None:
    code = (
        "import sys; from compactor import Log; "
        "print(sorted({'pyspark', 'pyarrow', 'numba', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("positions", "shown"),
    [
        ([7], "record 7 of the batch: no"),
        ([7, 9], "records 7, 9 of the batch: no"),
        (range(3, 300), "records 3, 4, 5 and 294 more of the batch: no"),
    ],
)
def test_an_error_names_the_first_records_that_were_refused(
    positions: Sequence[int], shown: str
) -> None:
    assert str(RecordValidationError(InvalidRecordError("no"), positions)) == shown
