"""A plain append behind a deletion, new settings, or a refusal does what any other append does."""

from pathlib import Path
from random import Random

import pytest

from compactor import Log, LogOptions
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.errors import InvalidOffsetError, KafkaStorageError, LogError
from storage.log.index_files import TIME_ENTRY
from storage.log.log_config import LogConfig
from storage.log.plain_append import BatchAppendError
from storage.log.scheduler import ManualScheduler
from tests.engine.replay.replayed import kernels_used

NOW_MS = 1_700_000_000_000


def one(chance: Random) -> bytes:
    records = [
        Record(n, NOW_MS + chance.randrange(-500, 500), b"k", b"v" * chance.randrange(300))
        for n in range(chance.choice((1, 1, 3)))
    ]
    return encode_batch(records)


@pytest.mark.parametrize("appends", range(4))
def test_a_log_that_was_deleted_takes_nothing(appends: int, tmp_path: Path) -> None:
    """Whatever is kept of the appends before it."""
    chance = Random(1)
    with kernels_used(True):
        scheduler = ManualScheduler(lambda: NOW_MS)
        options = LogOptions(clock=lambda: NOW_MS, scheduler=scheduler)
        log = Log.open(str(tmp_path / "t-0"), options)
        for _ in range(appends):
            log.append_as_leader(one(chance))
        log.delete()
        for _ in range(2):
            with pytest.raises(KafkaStorageError):
                log.append_as_leader(one(chance))
            with pytest.raises(BatchAppendError) as refused:
                log.append_batches_as_leader(one(chance) + one(chance))
            assert isinstance(refused.value.cause, KafkaStorageError)


def told_behind_new_settings(with_kernels: bool, path: Path) -> list[object]:
    """Of appends that new settings refuse, the first of them for its size, which is looked at
    before the kernel is told of them."""
    options = LogOptions(clock=lambda: NOW_MS, scheduler=ManualScheduler(lambda: NOW_MS))
    wrong = (
        encode_batch([Record(0, NOW_MS, b"k", b"v" * 5000)]),
        encode_batch([Record(0, NOW_MS, None, b"v")]),
        encode_batch([Record(0, NOW_MS - 5000, b"k", b"v")]),
        encode_batch([Record(0, NOW_MS, b"k", b"v")]),
    )
    told: list[object] = []
    with kernels_used(with_kernels), Log.open(str(path), options) as log:
        for _ in range(4):
            log.append_as_leader(encode_batch([Record(0, NOW_MS, b"k", b"v")]))
        log.config = LogConfig(
            cleanup_policy="compact",
            max_message_bytes=1000,
            message_timestamp_before_max_ms=1000,
        )
        for data in wrong:
            try:
                told.append(log.append_as_leader(data).last_offset)
            except LogError as error:
                told.append(type(error).__name__)
    return told


def test_new_settings_hold_from_the_next_append_on(tmp_path: Path) -> None:
    told = told_behind_new_settings(True, tmp_path / "t-0")
    assert told == told_behind_new_settings(False, tmp_path / "t-1")
    assert [type(each) for each in told] == [str, str, str, int]
    assert told[-1] == 4


def told_behind_a_refusal(with_kernels: bool, path: Path) -> list[object]:
    """Of appends to a segment whose last time entry has an offset that is not there yet: the log
    takes the bytes of what the index refuses, and does not end behind them."""
    batches = [encode_batch([Record(0, NOW_MS + n, None, b"v" * 50)]) for n in range(8)]
    batches.append(encode_batch([Record(n, NOW_MS + 8 + n, None, b"v") for n in range(200)]))
    options = LogOptions(
        config=LogConfig(index_interval_bytes=400),
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
    )
    told: list[object] = []
    with kernels_used(with_kernels):
        log = Log.open(str(path), options)
        log.append_as_leader(batches[0])
        log.segments[0].time_index.file.add(TIME_ENTRY.pack(NOW_MS, 100))
        for data in batches:
            try:
                told.append(log.append_as_leader(data))
            except LogError as error:
                told.append(type(error))
        log.close_handlers()
    return [*told, *((file.name, file.read_bytes()) for file in sorted(path.iterdir()))]


def test_behind_bytes_that_an_index_has_refused_the_next_ones_come(tmp_path: Path) -> None:
    """L-6.1: the log is longer then than where it ends."""
    expected = told_behind_a_refusal(False, tmp_path / "t-0")
    assert InvalidOffsetError in expected
    assert told_behind_a_refusal(True, tmp_path / "t-1") == expected
