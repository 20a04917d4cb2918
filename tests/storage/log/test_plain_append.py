"""What is kept between plain appends is what would be told anew, whatever is done to the log."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from compactor import Log, LogOptions
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log import kernels
from storage.log.appending import AppendRequest
from storage.log.batch_appends import BatchAppendError
from storage.log.errors import InvalidOffsetError, KafkaStorageError, LogError
from storage.log.log_config import LogConfig
from storage.log.plain_append import PlainAppends
from storage.log.producer_append_info import AppendOrigin
from storage.log.scheduler import ManualScheduler
from storage.log.segment import LogSegment
from storage.log.time_index_file import ENTRY
from tests.engine.replay.replayed import kernels_used

NOW_MS = 1_700_000_000_000
STOPS_AT, OF_LOG = 13, 5  # places in append_kernel.PlainAppend
BY_ANOTHER_LEADER = AppendRequest(leader_epoch=1)
CONFIGS = (
    LogConfig(index_interval_bytes=100),
    LogConfig(segment_bytes=900, index_interval_bytes=0),
    LogConfig(flush_messages=5, cleanup_policy="compact"),
    LogConfig(segment_index_bytes=36, index_interval_bytes=1),
)


class Checked:
    """In the place of PlainAppends._is_told: tells anew, too, where it says yes, and compares."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept = 0
        real = PlainAppends._is_told

        def is_told(plain: PlainAppends, segment: LogSegment, how: AppendRequest) -> bool:
            if not real(plain, segment, how):
                return False
            before, end = numbers(plain), plain._end
            plain._take(plain._local.config)
            log = plain._held_log(segment, how.leader_epoch, False)
            plain._tell(kernels, how, log, is_alone=True)
            assert numbers(plain) == before
            plain._end = end
            self.kept += 1
            return True

        monkeypatch.setattr(PlainAppends, "_is_told", is_told)


def numbers(plain: PlainAppends) -> list[int]:
    """But for where many batches stop, which is nothing to a single one."""
    told: list[int] = plain._told.numbers.tolist()
    return told[OF_LOG:STOPS_AT] + told[STOPS_AT + 1 :]


def one(chance: Random) -> bytes:
    records = [
        Record(n, NOW_MS + chance.randrange(-500, 500), b"k", b"v" * chance.randrange(300))
        for n in range(chance.choice((1, 1, 3)))
    ]
    return encode_batch(records)


def disturb(log: Log, chance: Random) -> None:
    """Something else than a plain append by the leader of before."""
    end = log.log_end_offset
    refused = bytearray(one(chance))
    refused[-1] ^= 1
    too_long = encode_batch([Record(0, NOW_MS, b"k", b"v" * 1_100_000)])
    coordinator = AppendRequest(origin=AppendOrigin.COORDINATOR)

    def new_settings_and_a_refusal() -> None:
        log.config = chance.choice(CONFIGS)
        log.append_as_leader(too_long)

    does: tuple[Callable[[], object], ...] = (
        log.roll,
        log.flush,
        log.sync,
        log.follow_end,
        log.take_producer_snapshot,
        lambda: log.read(log.log_start_offset).read(),
        lambda: log.truncate_to(max(log.log_start_offset, end - chance.randrange(4))),
        lambda: log.truncate_fully(end + chance.randrange(3)),
        lambda: log.assign_epoch(chance.randrange(3), end),
        lambda: setattr(log, "config", chance.choice(CONFIGS)),
        new_settings_and_a_refusal,
        lambda: log.append_as_leader(bytes(refused)),
        lambda: log.append_as_leader(one(chance), BY_ANOTHER_LEADER),
        lambda: log.append_as_leader(one(chance), coordinator),
        lambda: log.append_batches_as_leader(one(chance) + one(chance)),
        lambda: log.append_batches_as_leader(bytes(refused)),
        lambda: log.increment_log_start(log.high_watermark),
        log.delete_old_segments,
    )
    with suppress(LogError):
        chance.choice(does)()


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_is_what_would_be_told(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """L-13, L-18."""
    checked, chance = Checked(monkeypatch), Random(seed)
    with kernels_used(True):
        scheduler = ManualScheduler(lambda: NOW_MS)
        options = LogOptions(config=CONFIGS[seed % 4], clock=lambda: NOW_MS, scheduler=scheduler)
        with Log.open(str(tmp_path / "t-0"), options) as log:
            for _ in range(250):
                if chance.random() < 0.3:
                    disturb(log, chance)
                try:
                    log.append_as_leader(one(chance))
                except LogError:
                    continue
    assert checked.kept > 40


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
        log.segments[0].time_index.add(ENTRY.pack(NOW_MS, 100))
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
