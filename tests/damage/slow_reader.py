"""What a reader of committed records sees of the files of a log: slow, obvious, nothing of ours.

Messages of format v0 and v1 after log-format F-7, batches of v2 by `reference_batch`.
"""

import gzip
from struct import unpack_from
from typing import Any

import cramjam

from tests.damage.damaged_logs import Files
from tests.oracle.compare import alive
from tests.support.reference_batch import TRANSACTIONAL, decode, decompress_snappy, split

GZIP, SNAPPY, LZ4 = 1, 2, 3


def reader_view(files: Files, log_start_offset: int = 0) -> dict[str, str]:
    """The latest value of every key, both in hex."""
    lines: list[dict[str, Any]] = []
    for name in sorted(files):
        if name.endswith(".log"):
            for raw in split(files[name]):
                lines += _v2(raw) if raw[16] == 2 else _legacy(raw)
    return alive(lines, log_start_offset)


def _v2(raw: bytes) -> list[dict[str, Any]]:
    batch = decode(raw)
    head = {
        "base_offset": batch.base_offset,
        "control": batch.is_control,
        "txn": bool(batch.attributes & TRANSACTIONAL),
        "pid": batch.producer_id,
    }
    records = [(r.offset, r.key, r.value) for r in batch.records]
    if batch.is_control:  # the type of a marker counts, whatever its version (F-6.1)
        records = [(at, b"\0\0" + (key or b"")[2:4], value) for at, key, value in records]
    return [head, *(_line(*record) for record in records)]


def _line(offset: int, key: bytes | None, value: bytes | None) -> dict[str, Any]:
    return {
        "offset": offset,
        "key": None if key is None else key.hex(),
        "value": None if value is None else value.hex(),
    }


def _legacy(raw: bytes) -> list[dict[str, Any]]:
    head = {"base_offset": 0, "control": False, "txn": False, "pid": -1}
    return [head, *(_line(*message) for message in _messages(raw))]


def _messages(raw: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    (offset,) = unpack_from(">q", raw)
    codec, at = raw[17] & 7, 26 if raw[16] == 1 else 18
    key, at = _bytes(raw, at)
    value, _ = _bytes(raw, at)
    if not codec:
        return [(offset, key, value)]
    assert value is not None
    inner = [m for each in _whole(_decompressed(codec, value)) for m in _messages(each)]
    if raw[16] == 0:
        return inner
    base = offset - inner[-1][0]  # relative offsets, the last one is the wrapper's
    return [(base + relative, k, v) for relative, k, v in inner]


def _whole(data: bytes) -> list[bytes]:
    """The messages in a wrapper; one that is cut short ends them, as for Kafka's reader."""
    messages = []
    while len(data) >= 12:
        size = 12 + unpack_from(">i", data, 8)[0]
        if size > len(data):
            break
        messages.append(data[:size])
        data = data[size:]
    return messages


def _bytes(raw: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = unpack_from(">i", raw, at)
    at += 4
    return (None, at) if length < 0 else (raw[at : at + length], at + length)


def _decompressed(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.decompress(data)
    if codec == SNAPPY:
        return decompress_snappy(data)
    assert codec == LZ4
    # blocks behind a head of 7 bytes; its checksum is wrong in format v0 (F-8.4)
    at, blocks = 7, []
    while length := unpack_from("<I", data, at)[0]:
        size = length & 0x7FFFFFFF
        block = data[at + 4 : at + 4 + size]
        stored = bool(length & 0x80000000)
        blocks.append(block if stored else _lz4_block(block))
        at += 4 + size
    return b"".join(blocks)


def _lz4_block(block: bytes) -> bytes:
    out = bytearray(1 << 16)
    return bytes(out[: cramjam.lz4.decompress_block_into(block, out, output_len=len(out))])
