"""A small sound log directory, built batch by batch, for tests that then damage it."""

from pathlib import Path

from storage.codecs.compression import Codec
from storage.formats import clean_shutdown
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir

TOPIC, PARTITION = "orders", 0
RECORDS_A_BATCH = 3
BATCHES_A_SEGMENT = 5
END_OFFSET = 2 * RECORDS_A_BATCH * BATCHES_A_SEGMENT


def build(root: Path, codec: Codec = Codec.NONE) -> Path:
    """Two segments of five batches, an index entry for nearly each; the partition directory.

    Of a broker that was not shut down: there is no marker that says so.
    """
    batches = [_batch(offset, codec) for offset in range(0, END_OFFSET, RECORDS_A_BATCH)]
    segments = tuple(batches[:BATCHES_A_SEGMENT]), tuple(batches[BATCHES_A_SEGMENT:])
    build_log_dir(root, BuiltLog(TOPIC, PARTITION, segments, index_interval_bytes=0))
    (root / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    return root / f"{TOPIC}-{PARTITION}"


def patch(path: Path, position: int, data: bytes) -> None:
    """Put data over what stands at a position."""
    with open(path, "r+b") as out:
        out.seek(position)
        out.write(data)


def _batch(offset: int, codec: Codec) -> Batch:
    messages = (
        Message(b"key-%d" % (o % 4), None if o % 7 == 6 else b"value" * 10, 1000 + o)
        for o in range(offset, offset + RECORDS_A_BATCH)
    )
    return Batch(tuple(messages), codec)
