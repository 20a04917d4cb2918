"""Many batches by one call: as if each were appended by itself, in memory, on disk, in answers.

Appends one by one are the reference; they are held against Kafka by themselves.
"""

import errno
import os
import resource
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from compactor import Log, LogOptions
from storage.codecs.compression import Codec
from storage.file_names import file_name
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log import plain_append
from storage.log.batches import in_memory
from storage.log.errors import IllegalArgumentError, KafkaStorageError, LogError
from storage.log.loading import LoadingState
from storage.log.log_config import LogConfig
from storage.log.plain_append import BatchAppendError
from storage.log.record_decoder import whole
from storage.log.scheduler import ManualScheduler
from storage.log.segment import LogSegment
from storage.log.validation import BY_CLIENT, AppendRequest, message_set
from tests.engine.replay.replayed import kernels_used
from tests.storage.log.test_lazy_kernels import mutated

NOW_MS = 1_700_000_000_000
CONFIGS = (
    LogConfig(),
    LogConfig(index_interval_bytes=0),
    LogConfig(index_interval_bytes=1, segment_index_bytes=96),
    LogConfig(segment_bytes=1500, index_interval_bytes=300),
    LogConfig(cleanup_policy="compact"),
    LogConfig(message_timestamp_after_max_ms=400),
    LogConfig(message_timestamp_type="LogAppendTime"),
    LogConfig(max_message_bytes=400, segment_ms=700),
    LogConfig(flush_messages=7),
)


def clock() -> int:
    return NOW_MS


class Call(NamedTuple):
    """Batches that are appended by one call, or one by one."""

    batches: Sequence[bytes]
    request: AppendRequest = BY_CLIENT


class Told(NamedTuple):
    """What came of calls: of each batch, of the log, in its files."""

    infos: list[str]
    log: list[object]
    files: dict[str, bytes]


def told_of(log: Log, path: Path, infos: list[str]) -> Told:
    state = [
        log.log_end_offset,
        log.high_watermark,
        log.last_stable_offset,
        log.recovery_point,
        log.epochs.entries,
        log.producers.map_end_offset,
        [repr(known) for known in log.producers.producers],
        [
            (s.base_offset, s.size_bytes, s.largest_so_far, s.bytes_since_entry)
            for s in log.segments
        ],
    ]
    files = {file.name: file.read_bytes() for file in path.iterdir()}
    try:
        log.close()
    except KafkaStorageError:  # its directory is offline
        log.close_handlers()
    closed = {f"{file.name}, closed": file.read_bytes() for file in path.iterdir()}
    return Told(infos, state, files | closed)


def opened(path: Path, config: LogConfig) -> Log:
    shutil.rmtree(path, ignore_errors=True)
    return Log.open(
        str(path), LogOptions(config=config, clock=clock, scheduler=ManualScheduler(clock))
    )


def one_by_one(path: Path, config: LogConfig, calls: Sequence[Call]) -> Told:
    """Each by itself; of a call, nothing behind one that is refused."""
    log, infos = opened(path, config), []
    for call in calls:
        for number, data in enumerate(call.batches):
            try:
                infos.append(str(log.append_as_leader(data, call.request)))
            except LogError as error:
                infos.append(f"{number} {type(error).__name__} {error}")
                break
    return told_of(log, path, infos)


def at_once(path: Path, config: LogConfig, calls: Sequence[Call]) -> Told:
    log, infos = opened(path, config), []
    for call in calls:
        try:
            done = log.append_batches_as_leader(b"".join(call.batches), call.request)
            assert len(done) == len(call.batches)
            infos += [str(info) for info in done]
        except BatchAppendError as error:
            infos += [str(error.appended[number]) for number in range(len(error.appended))]
            infos.append(f"{error.number} {type(error.cause).__name__} {error.cause}")
            assert error.position == sum(map(len, call.batches[: error.number]))
    return told_of(log, path, infos)


class Sender:
    """Makes batches of several clients, the next one of each mostly."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._next = dict.fromkeys(range(1, 24), 0)
        self._last_ms = NOW_MS

    def batch(self) -> bytes:
        chance = self._chance
        count = chance.choice((1, 1, 2, 5))
        self._last_ms += chance.choice((0, 0, 1, 30, -20))
        records = [
            Record(
                n, self._last_ms + chance.choice((0, n)), b"k%d" % n, b"v" * chance.randrange(90)
            )
            for n in range(count)
        ]
        kind = chance.random()
        if kind < 0.03:
            return message_set(records[:1], 1, Codec.NONE, None)
        if kind < 0.06:
            return encode_batch(records, Codec.LZ4)
        if kind < 0.08:
            return encode_batch([records[0]._replace(key=None)])
        if kind < 0.45:
            return encode_batch(records)
        who = chance.choice((1, 1, 1, 2, 3, chance.randrange(1, 24)))
        first = self._next[who] + chance.choice((0,) * 30 + (1, -count))
        self._next[who] = first + count
        options = BatchOptions(
            producer_id=who,
            producer_epoch=int(chance.random() < 0.01),
            base_sequence=max(first, 0),
            is_transactional=who == 3,
        )
        return encode_batch(records, options=options)


def random_calls(seed: int) -> list[Call]:
    chance = Random(seed)
    sender = Sender(chance)
    calls = []
    for number in range(12):
        batches = [sender.batch() for _ in range(chance.choice((0, 1, 5, 40)))]
        if batches and chance.random() < 0.2:
            at = chance.randrange(len(batches))
            changed = mutated(batches[at], chance)
            if len(changed) == len(batches[at]) and changed[8:12] == batches[at][8:12]:
                batches[at] = changed
        calls.append(Call(batches, AppendRequest(leader_epoch=number // 4)))
    return calls


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_call_does_what_its_batches_do_one_by_one(
    config: LogConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-13, L-14, L-18."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)
    path = tmp_path / "t-0"
    for seed in range(4):
        calls = random_calls(seed)
        with kernels_used(False):
            expected = one_by_one(path, config, calls)
            assert at_once(path, config, calls) == expected
        with kernels_used(True):
            assert one_by_one(path, config, calls) == expected
            assert at_once(path, config, calls) == expected
            with monkeypatch.context() as small:
                small.setattr(plain_append, "_FIRST_WINDOW_BYTES", 200)
                assert at_once(path, config, calls) == expected


# ---- what goes wrong on the way ------------------------------------------------------------------

SMALL = LogConfig(index_interval_bytes=300, segment_index_bytes=480)
ONE = [encode_batch([Record(0, NOW_MS + n, b"key", b"v" * 100)]) for n in range(40)]
SIZE = len(ONE[0])


@contextmanager
def files_end_at(size_bytes: int) -> Iterator[None]:
    """No file gets longer, as on a disk that is full: a write takes what fits, the next none."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, SIZE - 1])
@pytest.mark.parametrize("with_kernels", [False, True])
def test_a_full_disk_leaves_what_fits(with_kernels: bool, room: int, tmp_path: Path) -> None:
    """The log is as before the batch that does not fit; those before it are in."""
    path = tmp_path / "t-0"
    with kernels_used(with_kernels):
        log = opened(path, SMALL)
        log.append_batches_as_leader(b"".join(ONE[:5]))
        with files_end_at(12 * SIZE + room), pytest.raises(BatchAppendError) as found:
            log.append_batches_as_leader(b"".join(ONE[5:]))
        assert (found.value.number, found.value.position) == (7, 7 * SIZE)
        assert isinstance(found.value.cause, KafkaStorageError)
        assert [info.last_offset for info in found.value.appended] == list(range(5, 12))
        assert log.log_end_offset == 12
        log.close_handlers()
        assert (path / file_name(0, ".log")).stat().st_size == 12 * SIZE
        assert len(records_after_a_crash(path)) == 12


def records_after_a_crash(path: Path) -> list[Record]:
    """All there is once the log was opened again; each batch is looked at."""
    options = LogOptions(
        config=SMALL,
        clock=clock,
        scheduler=ManualScheduler(clock),
        state=LoadingState(is_clean=False),
    )
    found: list[Record] = []
    with Log.open(str(path), options) as log:
        for batch in in_memory(log.read(0, 1 << 20).read()):
            batch.require_valid()
            found += map(whole, batch.records())
        assert [record.offset for record in found] == list(range(log.log_end_offset))
        for record in found:
            at = log.offset_by_timestamp(record.timestamp)
            assert at is not None
            assert at.offset == record.offset
    return found


@pytest.mark.parametrize("failing", ["the offset index", "the time index"])
def test_an_index_that_fails_takes_nothing_from_the_log(
    failing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The bytes are all there: what is appended is, and what is found then is sound."""
    path = tmp_path / "t-0"
    with kernels_used(True):
        log = opened(path, SMALL)
        log.append_batches_as_leader(b"".join(ONE[:9]))
        segment = log.segments[0]
        file = (segment.offset_index if "offset" in failing else segment.time_index).file
        monkeypatch.setattr(file, "_write", refuse)
        with pytest.raises(BatchAppendError) as found:
            log.append_batches_as_leader(b"".join(ONE[9:]))
        assert isinstance(found.value.cause, KafkaStorageError)
        assert (found.value.number, found.value.position) == (0, 0)  # they are one write
        assert len(found.value.appended) == 0
        assert log.log_end_offset == 9
        with pytest.raises(KafkaStorageError, match="offline"):
            log.append_as_leader(ONE[0])
        log.close_handlers()
        assert len(records_after_a_crash(path)) == 40


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_one_append_at_a_time_those_before_an_index_fails_are_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "t-0"
    with kernels_used(True):
        log = opened(path, SMALL)
        for data in ONE[:9]:
            log.append_as_leader(data)
        monkeypatch.setattr(log.segments[0].time_index.file, "_write", refuse)
        done = 9
        with pytest.raises(KafkaStorageError):
            for data in ONE[9:]:
                log.append_as_leader(data)
                done += 1
        assert 9 <= done == log.log_end_offset < 39
        log.close_handlers()
        assert len(records_after_a_crash(path)) == done + 1  # its bytes are in the `.log`


@pytest.mark.parametrize("with_kernels", [False, True])
def test_a_flush_that_fails_is_an_error_of_the_batch_that_it_is_due_to(
    with_kernels: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """L-18, L-21: those before it are answered; it is in the log, as by itself."""
    config, calls = LogConfig(flush_messages=15), [Call(ONE[:5]), Call(ONE[5:])]

    def flush(_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as failing:
        failing.setattr(LogSegment, "flush", flush)
        with kernels_used(False):
            expected = one_by_one(tmp_path / "t-0", config, calls)
        with kernels_used(with_kernels):
            assert at_once(tmp_path / "t-0", config, calls) == expected
    assert len(expected.infos) == 15
    assert expected.infos[-1].startswith("9 KafkaStorageError")
    assert expected.log[0] == 15


HIGHEST = 2**63 - 2


@pytest.mark.parametrize("start", [2**62 - 1, 2**62, 2**63 - 1000, HIGHEST - 3, HIGHEST - 2])
def test_offsets_go_up_to_the_highest_that_another_can_follow(start: int, tmp_path: Path) -> None:
    """L-13: a batch that would end behind it is refused, with Kafka's error, and not written."""
    pair = encode_batch([Record(n, NOW_MS, b"key", b"v") for n in range(2)])
    packed = encode_batch([Record(n, NOW_MS, b"key", b"v") for n in range(2)], Codec.LZ4)
    told = []
    for with_kernels in (False, True):
        path = tmp_path / str(with_kernels) / "t-0"
        path.parent.mkdir()
        with kernels_used(with_kernels):
            log = opened(path, LogConfig(index_interval_bytes=0))
            log.truncate_fully(start)
            log.flush(force=True)
            assert log.recovery_point == start
            infos = []
            for data in (pair, pair, ONE[0], packed, ONE[0] * 3, pair * 2):
                try:
                    infos += [str(i) for i in log.append_batches_as_leader(data)]
                except BatchAppendError as error:
                    assert isinstance(error.cause, IllegalArgumentError)
                    assert log.log_end_offset > HIGHEST - 2
                    infos.append(f"{error.number} {error.cause}")
            assert log.log_end_offset == min(start + 14, HIGHEST + 1)
            told.append(told_of(log, path, infos))
    assert told[0] == told[1]


def test_what_was_flushed_before_a_call_outlives_a_crash_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-21, L-22: the bytes of a call come to disk in part, and those of the indexes or not."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)
    path, chance = tmp_path / "t-0", Random(1)
    with kernels_used(True):
        log = opened(path, SMALL)
        log.append_batches_as_leader(b"".join(ONE[:9]))
        log.flush(force=True)
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        log.append_batches_as_leader(b"".join(ONE[9:]))
        after = {file.name: file.read_bytes() for file in path.iterdir()}
        log.close_handlers()
        name, counts = file_name(0, ".log"), set[int]()
        assert before.keys() == after.keys()
        assert all(len(before[index]) == len(after[index]) for index in before if index != name)
        assert sum(before[file] != after[file] for file in before) == 3
        for _ in range(40):
            end = chance.choice((9 * SIZE, 40 * SIZE, chance.randrange(9 * SIZE, 40 * SIZE)))
            lost = chance.choice((end, chance.randrange(9 * SIZE, 40 * SIZE)))
            data = after[name][: min(end, lost)].ljust(end, b"\0")
            for file in before:
                kept = chance.choice((before, after))[file]
                (path / file).write_bytes(data if file == name else kept)
            counts.add(len(records_after_a_crash(path)))
            assert min(end, lost) // SIZE in counts
        assert min(counts) == 9
        assert max(counts) == 40
