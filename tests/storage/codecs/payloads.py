"""Payloads for the tests of codecs, and reading them into an array of a given size."""

import random

import numpy as np

from storage.codecs.compression import Codec, decompress_into
from storage.codecs.lz4_block import ByteArray


def text(size: int, seed: int = 7) -> bytes:
    """Words, half of them the same: compressible, but not by much."""
    rng = random.Random(seed)
    words: list[str] = []
    length = 0
    while length < size:
        word = "compaction"
        if rng.random() < 0.5:
            word = format(int(rng.random() * 2**30), "o")[: 1 + int(rng.random() * 9)]
        words.append(word)
        length += len(words[-1])
    return "".join(words)[:size].encode()


def into(codec: Codec, payload: bytes, room: int, at: int = 0) -> bytes | None:
    out: ByteArray = np.zeros(room, dtype=np.uint8)
    end = decompress_into(codec, payload, out, at)
    return None if end is None else out[at:end].tobytes()
