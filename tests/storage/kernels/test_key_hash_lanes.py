"""Keys that are hashed eight at a time have the hashes that they have one by one."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numba import njit

from storage.formats.batch_columns import SLACK_BYTES
from storage.kernels.key_hash_lanes import (
    LANES,
    MAX_LENGTH,
    MAX_WORDS,
    empty_queues,
    hash_waiting,
    put_key,
)
from tests.storage.kernels.another_processor import WITHOUT_WIDE_VECTORS, shown_by, vectors_in
from tests.storage.kernels.test_key_hash import KEY_HIGH, KEY_LOW, Digest, slow_hash

UNTOUCHED = 77


@cache
def compiled() -> Callable[..., None]:
    """Not cached between processes: numba would not notice that what is inlined has changed."""

    @njit
    def call(buffer, edges, secret, first_hash, second_hash):  # type: ignore[no-untyped-def]
        queues = empty_queues()
        for i in range(len(edges) - 1):
            words = put_key(queues, buffer, edges[i], edges[i + 1] - edges[i], i)
            if words:
                hash_waiting(queues, words, secret, first_hash, second_hash)
        for words in range(1, MAX_WORDS + 1):
            hash_waiting(queues, words, secret, first_hash, second_hash)

    kernel: Callable[..., None] = call
    return kernel


def hashes_of(keys: list[bytes]) -> list[Digest]:
    edges = np.cumsum([0, *map(len, keys)]).astype(np.int64)
    buffer = np.frombuffer(b"".join(keys) + b"\xff" * SLACK_BYTES, np.uint8).copy()
    columns = [np.full(len(keys) + 1, UNTOUCHED, np.uint64) for _ in range(2)]
    secret: Any = np.uint64(KEY_LOW), np.uint64(KEY_HIGH)
    compiled()(buffer, edges, secret, *columns)
    assert all(column[-1] == UNTOUCHED for column in columns)
    return list(zip(*(column[:-1].tolist() for column in columns), strict=True))


def differing(seed: int, count: int, lengths: range) -> list[bytes]:
    chance = Random(seed)
    keys = [chance.randbytes(chance.choice(lengths)) for _ in range(count)]
    found = zip(keys, hashes_of(keys), strict=True)
    return [key for key, digest in found if digest != slow_hash(key, KEY_LOW, KEY_HIGH)]


@pytest.mark.parametrize("length", range(MAX_LENGTH + 1))
def test_keys_of_one_length_fill_every_lane_and_leave_some_waiting(length: int) -> None:
    assert differing(length, 2 * LANES + 3, range(length, length + 1)) == []


@pytest.mark.parametrize("count", range(2 * LANES + 1))
def test_any_number_of_keys(count: int) -> None:
    assert differing(count, count, range(20)) == []


@pytest.mark.parametrize("seed", range(20))
def test_keys_of_all_lengths_in_any_order(seed: int) -> None:
    assert differing(seed, 300, range(MAX_LENGTH + 1)) == []


def test_they_are_the_same_on_a_processor_without_wide_vectors(tmp_path: Path) -> None:
    """Kernels are compiled for one, which is not this one."""
    code = (
        "from tests.storage.kernels.test_key_hash_lanes import compiled, differing\n"
        "print(differing(1, 300, range(64)))\n"
    )
    assert shown_by(code + vectors_in("compiled()"), tmp_path) == ["[]", WITHOUT_WIDE_VECTORS]
