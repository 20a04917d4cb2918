"""The files of a partition, beside what Kafka leaves of the same appends (F-12 to F-15)."""

from pathlib import Path

from compactor import Log, LogConfig, LogOptions
from storage.codecs.compression import Codec
from storage.log.scheduler import ManualScheduler
from tests.storage.kafka_batches import KAFKAS_FILES
from tests.support.log_builder import Batch, Message, Producer, append

NOW_MS = 1_700_000_000_000
APPENDED = (  # leader epoch, batch
    (0, Batch([Message(b"a", b"1", NOW_MS), Message(b"b", None, NOW_MS - 1000)])),
    (0, Batch([Message(b"a", b"2", NOW_MS + 500, ((b"h", b"x"), (b"", None)))], Codec.LZ4)),
    (3, Batch([Message(b"c", b"3", NOW_MS + 400)], Codec.ZSTD)),
    (
        3,
        Batch([Message(b"d", b"4", NOW_MS + 600), Message(b"e", b"5", NOW_MS + 601)], Codec.GZIP),
    ),
    (3, Batch([Message(b"f", b"6", NOW_MS + 700)], Codec.SNAPPY)),
)
PRODUCERS = {0: Producer(7, 2, 0), 3: Producer(7, 2, 2)}  # of two of the batches


def now_ms() -> int:
    return NOW_MS


def test_a_partition_is_kafkas_to_the_byte(tmp_path: Path) -> None:
    """The `.log` of five codecs, indexes, snapshots of producers at the roll and at the end,
    leader epochs."""
    config = LogConfig(segment_bytes=330, index_interval_bytes=0)
    options = LogOptions(clock=now_ms, scheduler=ManualScheduler(now_ms), config=config)
    with Log.open(str(tmp_path / "t-0"), options) as log:
        for number, (leader_epoch, batch) in enumerate(APPENDED):
            append(log, batch._replace(producer=PRODUCERS.get(number)), leader_epoch)
    found = {path.name: path.read_bytes().hex() for path in (tmp_path / "t-0").iterdir()}
    assert found == KAFKAS_FILES
