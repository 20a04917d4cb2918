"""With the kernels the engine does what it does without them: answers, errors, bytes.

The modules that go batch by batch are the reference; they are held against Kafka by themselves.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from crc32c import crc32c

from compactor import Log, LogOptions
from storage.codecs.compression import Codec
from storage.file_names import file_name
from storage.formats.batch_header import CHECKED_AT, CRC_AT
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log import segment_recovery
from storage.log.batches import in_memory
from storage.log.errors import LogError
from storage.log.file_records import next_offset
from storage.log.lazy_kernels import COMPILED
from storage.log.loading import LoadingState, rehearsed
from storage.log.log_config import LogConfig
from storage.log.scheduler import ManualScheduler
from storage.log.validation import AppendRequest, message_set
from tests.engine.replay.replayed import kernels_used

NOW_MS = 1_700_000_000_000
PLAIN = (
    Record(0, NOW_MS, b"k", b"v"),
    Record(1, NOW_MS + 100_000, None, b"v" * 200),
    Record(2, NOW_MS - 3, b"key" * 30, None, ((b"name", b"content"), (b"", None))),
)
CONFIGS = (
    LogConfig(),
    LogConfig(cleanup_policy="compact"),
    LogConfig(message_timestamp_before_max_ms=2),
    LogConfig(message_timestamp_after_max_ms=99_999),
    LogConfig(message_timestamp_type="LogAppendTime"),
    LogConfig(compression_type="lz4"),
    LogConfig(max_message_bytes=200),
    LogConfig(segment_bytes=700),
)


def clock() -> int:
    return NOW_MS


def appended(
    with_kernels: bool, config: LogConfig, batches: list[bytes], path: Path, most_open: int = 100
) -> list[object]:
    """What each append told, or raised; and at last the bytes of all files."""
    shutil.rmtree(path, ignore_errors=True)
    told: list[object] = []
    with kernels_used(with_kernels):
        scheduler = ManualScheduler(clock)
        options = LogOptions(
            config=config, clock=clock, scheduler=scheduler, max_open_files=most_open
        )
        log = Log.open(str(path), options)
        for data in batches:
            try:
                told.append(str(log.append_as_leader(data)))
            except LogError as error:
                told.append(f"{type(error).__name__} {error}")
        told += [log.log_end_offset, log.last_stable_offset, log.high_watermark]
        log.close_handlers()
    return [*told, *((file.name, file.read_bytes()) for file in sorted(path.iterdir()))]


def mutated(data: bytes, chance: Random) -> bytes:
    """With some bytes changed, mostly under a checksum that is right; or cut short."""
    changed = bytearray(data)
    for _ in range(chance.randrange(4)):
        at = chance.choice([chance.randrange(len(data)), chance.randrange(61)])
        changed[at] = chance.choice([changed[at] ^ 1 << chance.randrange(8), 0, 0xFF, 0x7F, 0x80])
    if chance.random() < 0.9:
        changed[CRC_AT:CHECKED_AT] = crc32c(changed[CHECKED_AT:]).to_bytes(4, "big")
    if chance.random() < 0.1:
        del changed[chance.randrange(len(data)) :]
    return bytes(changed)


def batches(chance: Random) -> Iterator[bytes]:
    for _ in range(30):
        records = [
            PLAIN[chance.randrange(3)]._replace(offset=n) for n in range(chance.choice((1, 3, 9)))
        ]
        options = BatchOptions(
            producer_id=chance.choice((-1, -1, -1, 7)), producer_epoch=0, base_sequence=0
        )
        codec = chance.choice((Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4))
        data = encode_batch(records, codec, options)
        yield chance.choice([data, mutated(data, chance), data + data])


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_appends_end_alike_with_kernels_and_without(config: LogConfig, tmp_path: Path) -> None:
    """L-13, L-18."""
    path = tmp_path / "t-0"
    for seed in range(8):
        some = list(batches(Random(seed)))
        expected = appended(False, config, some, path)
        assert appended(True, config, some, path) == expected
        assert appended(True, config, some, path, most_open=1) == expected


def test_a_plain_batch_takes_the_short_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also the first one, after which the epoch has to be noted, and one that rolls a segment."""
    some = [encode_batch(PLAIN)] * 4
    config = LogConfig(index_interval_bytes=1, segment_bytes=3 * len(some[0]))
    expected = appended(False, config, some, tmp_path / "t-0")
    monkeypatch.setattr(Log, "_append", None)
    assert appended(True, config, some, tmp_path / "t-0") == expected
    assert expected[4] == 12


def test_without_numba_the_engine_works(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["numba"] = None
from compactor import Log, LogOptions
from storage.log import segment_recovery
from storage.log.validation import AppendRequest
from storage.log.batches import in_memory
from storage.log.lazy_kernels import COMPILED
from storage.log.scheduler import ManualScheduler
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
COMPILED.left_bytes = 0
batch = encode_batch([Record(0, 5, b"k", b"v")])
options = LogOptions(clock=int, scheduler=ManualScheduler(int))
with Log.open({str(tmp_path / "t-0")!r}, options) as log:
    for _ in range(3):
        log.append_as_leader(batch)
    assert log.offset_by_timestamp(5).offset == 0
    assert len(log.read(0).read()) == 3 * len(batch)
assert COMPILED.kernels is None and "numba.core" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_a_clean_log_is_opened_without_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-25.8: to load them takes longer than to open a thousand logs."""
    path = str(tmp_path / "t-0")
    config = LogConfig(index_interval_bytes=300)
    options = LogOptions(config=config, clock=clock, scheduler=ManualScheduler(clock))
    with kernels_used(False), Log.open(path, options) as log:
        for _ in range(40):
            log.append_as_leader(encode_batch(PLAIN))
    monkeypatch.setattr(COMPILED, "kernels", None)
    monkeypatch.setattr(COMPILED, "left_bytes", 0)
    with Log.open(path, options) as log:
        assert (log.log_end_offset, COMPILED.kernels) == (120, None)
        log.place_of(60)
        assert COMPILED.kernels is not None


def a_log(chance: Random, path: Path) -> list[int]:
    """Make one of several formats, codecs and epochs, damaged at times; where its batches are."""
    places, data, offset = [], bytearray(), 0
    for _ in range(60):
        count = chance.choice((1, 1, 3, 40))
        times = [NOW_MS + min(chance.randrange(900), 500) for _ in range(count)]
        records = [
            Record(offset + n, time, b"k", b"v" * chance.randrange(99))
            for n, time in enumerate(times)
        ]
        options = BatchOptions(
            partition_leader_epoch=len(data) // 9000,
            producer_id=chance.choice((-1, -1, -1, 7)),
            producer_epoch=0,
            base_sequence=0,
        )
        codec = chance.choice((Codec.NONE,) * 5 + (Codec.LZ4,))
        kind = chance.random()
        batch = encode_batch(records, codec, options)
        if kind < 0.03:
            batch = message_set(records, 1, Codec.NONE, None)
        elif kind < 0.06:
            batch = mutated(batch, chance)
        places.append(len(data))
        data += batch
        offset += count + chance.choice((0, 0, 5))
    del data[len(data) - chance.choice((0, 0, 20, 70)) :]
    path.mkdir()
    (path / file_name(0, ".log")).write_bytes(data)
    return places


def told_of_a_log(with_kernels: bool, seed: int, path: Path) -> list[object]:
    """What recovery, look-ups and reads tell of one log; and its files after that."""
    chance = Random(seed)
    told: list[object] = []
    with kernels_used(with_kernels):
        shutil.rmtree(path, ignore_errors=True)
        places = a_log(chance, path)
        config = LogConfig(
            index_interval_bytes=chance.choice((1, 300, 4096)),
            segment_index_bytes=chance.choice((1 << 20, 1 << 20, 200)),  # so many do not fit
        )
        scheduler = ManualScheduler(clock)
        state = LoadingState(is_clean=False)
        options = LogOptions(config=config, clock=clock, scheduler=scheduler, state=state)
        try:
            told += rehearsed(str(path), options)  # on an overlay, which no kernel may read
            log = Log.open(str(path), options)
        except LogError as error:  # as of an offset that does not fit
            return [f"{type(error).__name__} {error}"]
        told += [log.log_end_offset, log.epochs.entries, log.producers.map_end_offset]
        whole = (path / file_name(0, ".log")).read_bytes()
        asked: list[Callable[[], object]] = [
            *(lambda o=offset: log.place_of(o) for offset in range(log.log_end_offset + 2)),
            *(lambda t=time: log.offset_by_timestamp(NOW_MS + t) for time in range(-1, 502, 9)),
            *(lambda a=at: next_offset(whole[a : a + 3000]) for at in places),
        ]
        for ask in asked:
            try:
                told.append(ask())
            except LogError as error:
                told.append(f"{type(error).__name__} {error}")
        log.close()
    return [*told, *((file.name, file.read_bytes()) for file in sorted(path.iterdir()))]


@pytest.mark.parametrize("seed", range(20))
def test_recovery_and_look_ups_end_alike_with_kernels_and_without(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-2, L-4, L-11, L-20."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if seed % 2:
        monkeypatch.setattr(segment_recovery, "_WINDOW_BYTES", 2000)  # many windows a log
    path = tmp_path / "t-0"
    assert told_of_a_log(True, seed, path) == told_of_a_log(False, seed, path)


def test_a_kernel_finds_offsets_in_batches_of_all_sizes(tmp_path: Path) -> None:
    """L-2.6: small ones many a window, large ones by their headers."""
    chance, offsets, data = Random(1), [0], b""
    for _ in range(300):
        value = b"v" * chance.choice((0, 9, 150, 3000, 20_000))
        data += encode_batch([Record(offsets[-1], NOW_MS, None, value)])
        offsets.append(offsets[-1] + chance.choice((1, 2)))
    path = tmp_path / "t-0"
    path.mkdir()
    (path / file_name(0, ".log")).write_bytes(data)
    state = LoadingState(is_clean=False)
    with kernels_used(True):
        options = LogOptions(clock=clock, scheduler=ManualScheduler(clock), state=state)
        log = Log.open(str(path), options)
        (segment,) = log.segments
        for target in range(log.log_end_offset + 1):
            start = segment.offset_index.lookup(target).position
            expected = segment.log.search_for_offset(target, start)
            kernels = COMPILED.kernels
            assert kernels is not None
            found = segment.log.quick_search(kernels, segment.offset_index.file.opened(), target)
            assert found == expected
        log.close()


def test_a_look_up_in_the_midst_of_an_append_leaves_its_bytes_alone(tmp_path: Path) -> None:
    """The first open transaction is looked for while a segment is rolled for a plain batch."""
    path = str(tmp_path / "t-0")
    options = LogOptions(
        config=LogConfig(segment_bytes=200), clock=clock, scheduler=ManualScheduler(clock)
    )
    in_txn = BatchOptions(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    with kernels_used(True):
        with Log.open(path, options) as log:
            log.append_as_leader(encode_batch(PLAIN[:1], options=in_txn))
        with Log.open(path, options) as log:
            log.update_high_watermark(log.log_end_offset)
            log.append_as_leader(encode_batch([Record(0, NOW_MS, b"other", b"w" * 80)]))
            assert len(log.segments) == 2
            (batch,) = in_memory(log.read(1).read())
            batch.require_valid()
            assert [(r.offset, r.key) for r in batch.records()] == [(1, b"other")]


def test_an_epoch_that_begins_later_than_the_append_is_noted_anew(tmp_path: Path) -> None:
    """L-16.1: as after an index of epochs that is wrong."""
    path = str(tmp_path / "t-0")
    options = LogOptions(clock=clock, scheduler=ManualScheduler(clock))
    with kernels_used(True), Log.open(path, options) as log:
        for _ in range(3):
            log.append_as_leader(encode_batch(PLAIN[:1]))
        log.assign_epoch(0, 0)
        log.assign_epoch(2, 90)
        log.append_as_leader(encode_batch(PLAIN[:1]), AppendRequest(leader_epoch=2))
        assert log.epochs.entries == [(0, 0), (2, 3)]


@pytest.mark.parametrize("with_kernels", [False, True])
def test_a_recovery_counts_from_the_beginning_and_leaves_the_count_of_appends(
    with_kernels: bool, tmp_path: Path
) -> None:
    """L-11.1: a segment that was split is recovered with the count that its batches have left."""
    options = LogOptions(
        config=LogConfig(index_interval_bytes=300), clock=clock, scheduler=ManualScheduler(clock)
    )
    with kernels_used(with_kernels), Log.open(str(tmp_path / "t-0"), options) as log:
        for _ in range(9):
            log.append_as_leader(encode_batch(PLAIN))
        (segment,) = log.segments
        found = []
        for count in (0, 299, 301):
            segment.bytes_since_entry = count
            segment_recovery.recover_segment(segment, log.producers, log.epochs)
            index = segment.offset_index.file
            found.append(bytes(index.data[: index.size_bytes]))
            assert segment.bytes_since_entry == count
        assert found[0] == found[1] == found[2] != b""
