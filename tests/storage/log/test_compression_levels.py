"""The bytes that Kafka 4.3.1 writes at a topic's compression level.

Digests are of the `.log` after an append of TEXTS without a codec to a topic with the codec and the
level, by Kafka's own classes: `python -m tests.oracle engine SCRIPT DIR`.
"""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor import Log, LogConfig, LogOptions
from storage.arrow.writing import Batching, append_table
from storage.codecs.compression import Codec, compress, decompress
from storage.errors import ConfigError
from storage.files.local import LOCAL
from storage.formats.batch_header import BATCH_HEADER_BYTES
from storage.log.scheduler import ManualScheduler
from tests.engine.replay.replayed import replayed

TEXTS = [
    "".join(f"{number * number % (97 + text)} of {number % 7} " for number in range(2500))
    for text in range(8)
]
SHA256_OF_KAFKA = {
    "gzip 1": "1ca8e24418bd11653dd1da40908e0cb1e4a51a4d88ff1d11ae81a61261c2a955",
    "gzip 4": "74974780acf46f8d427615575dd85fb6ce22021056c144c538371c8950397c87",
    "gzip 9": "11154c12c84e7bc2868fec38a2736328fd896f0564f07c04fd7f80c97400a4d3",
    "lz4 1": "053e41fdc991be99cc3a741ef1f36bbe878276cb02d54cb3f647f91006235ea7",
    "lz4 2": "053e41fdc991be99cc3a741ef1f36bbe878276cb02d54cb3f647f91006235ea7",
    "lz4 3": "1f0f5fd2ddd6904a4399d1850b823021529e8ba43c5fc5252fdbaa179e8ee5b7",
    "lz4 8": "93da7f7b8228c9622003c04f303df4a511acc52c53ab0ac71ad7929ee20c2bc9",
    "lz4 12": "7770bf7324eaee152215fdf555efea90f473e540de74e20028365bc5a07a33c1",
    "lz4 17": "7770bf7324eaee152215fdf555efea90f473e540de74e20028365bc5a07a33c1",
    "zstd -5": "25d80a6a5a39af4519a4243f6819032455a2c6a31af4b61076750306b7870124",
    "zstd 1": "ac3aa31c80dfb053489f2d7366cd92d37e768f0e208fbcade7f316ed051e02a8",
    "zstd 9": "9afca405767954ebed08b74b08563c1c8833d9a149f932522a3ca8f289be6be8",
    "zstd 22": "8c34d53b37086e36c505c71de693d154c88785bffc21661056037aec65abc44b",
}


def script(codec: str, level: int) -> list[dict[str, Any]]:
    records = [{"k": None, "v": text, "ts": -1} for text in TEXTS]
    settings = {"compression.type": codec, f"compression.{codec}.level": str(level)}
    return [
        {"op": "config", **settings},
        {"op": "open"},
        {"op": "append", "records": records},
    ]


@pytest.mark.parametrize("name", SHA256_OF_KAFKA)
def test_the_bytes_are_those_of_kafka(name: str, tmp_path: Path) -> None:
    codec, level = name.split()
    replayed(LOCAL, str(tmp_path), script(codec, int(level)))
    (log,) = tmp_path.glob("t-0/*.log")
    assert hashlib.sha256(log.read_bytes()).hexdigest() == SHA256_OF_KAFKA[name]


@pytest.mark.parametrize("name", SHA256_OF_KAFKA)
def test_a_table_is_appended_at_the_level_of_the_topic(name: str, tmp_path: Path) -> None:
    codec, level = Codec[name.split()[0].upper()], int(name.split()[1])
    settings = {
        "compression.type": codec.name.lower(),
        f"compression.{codec.name.lower()}.level": str(level),
    }
    table = pa.table({"key": ["k"] * len(TEXTS), "value": TEXTS, "timestamp_ms": [1] * len(TEXTS)})
    options = LogOptions(
        clock=lambda: 1000,
        scheduler=ManualScheduler(lambda: 1000),
        config=LogConfig().changed(settings),
    )
    with Log.open(str(tmp_path / "t-0"), options) as log:
        append_table(log, table, Batching(batch_bytes=1 << 20))
    (file,) = tmp_path.glob("t-0/*.log")
    payload = file.read_bytes()[BATCH_HEADER_BYTES:]
    raw = decompress(codec, payload, "", 0)
    assert payload == compress(codec, raw, level)


def test_a_level_of_another_codec_changes_nothing(tmp_path: Path) -> None:
    plain, other = script("gzip", -1), script("gzip", -1)
    other[0] |= {"compression.zstd.level": "1", "compression.lz4.level": "1"}
    for name, lines in (("a", plain), ("b", other)):
        replayed(LOCAL, str(tmp_path / name), lines)
    a, b = ((next((tmp_path / name).glob("t-0/*.log"))).read_bytes() for name in "ab")
    assert a == b


@pytest.mark.parametrize("level", ["0", "10", "-2"])
def test_a_level_of_gzip_that_kafka_refuses(level: str) -> None:
    with pytest.raises(ConfigError):
        LogConfig().changed({"compression.gzip.level": level})
