"""Lines that a kernel writes are those that Python makes of rows, byte for byte."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from compactor.inspection.dump import parts_of
from compactor.inspection.dumped_log import RecordBlock
from compactor.views.record_line_kernel import KernelLines
from compactor.views.record_lines import line_of_row
from storage.codecs.compression import Codec
from tests.support.made_log import batch, packed, record
from tests.support.random_batches import random_batches
from tests.support.reference_batch import CONTROL, LOG_APPEND_TIME, ReferenceBatch, encode, sealed

ALL_OF_A_BYTE = bytes(range(0x80))
TEXTS = (
    b"",
    b"plain",
    b'"quoted\\"',
    ALL_OF_A_BYTE,
    "ä€😀\u2028".encode(),
    b"\xff",
    b"ab\xc3",  # cut in a character
    b"\xed\xa0\x80",  # half a surrogate pair
    b"\xc0\x80",  # longer than need be
    b"\xe0\x9f\xbf",
    b"\xf4\x90\x80\x80",  # beyond Unicode
    b"\xf0\x8f\xbf\xbf",
    b"\xf0\x90\x80\x80",
    b"\xe2\x28\xa1",
    b"\x80",
)


def blocks(tmp_path: Path, *batches: ReferenceBatch | bytes) -> list[RecordBlock]:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(b if isinstance(b, bytes) else encode(b) for b in batches))
    return [part for part in parts_of(str(path)) if isinstance(part, RecordBlock)]


def check(block: RecordBlock, in_json: bool) -> bool:
    """Whether the kernel took it."""
    found = KernelLines(in_json).of(block)
    assert found is None or found == b"".join(line_of_row(row, in_json) for row in block.rows())
    return found is not None


@pytest.mark.parametrize("in_json", [False, True])
@pytest.mark.parametrize("text", [*TEXTS, None], ids=repr)
def test_keys_and_values_of_every_kind(tmp_path: Path, text: bytes | None, in_json: bool) -> None:
    (block,) = blocks(tmp_path, batch(record(0, text, b"v"), record(1, b"k", text)))
    is_taken = check(block, in_json)
    has_only_ascii_that_prints = text is None or (text.isascii() and b"\x7f" not in text)
    is_text = text is None or text.decode(errors="ignore").encode() == text
    assert is_taken == (in_json or has_only_ascii_that_prints or not is_text)


@pytest.mark.parametrize("in_json", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_batches_by_chance(tmp_path: Path, seed: int, in_json: bool) -> None:
    chance = Random(seed)
    made = [b for b in random_batches(chance, 30) if not b.attributes & CONTROL]
    bare = [replace(b, records=tuple(replace(r, headers=()) for r in b.records)) for b in made]
    codecs = [chance.choice(list(Codec)) for _ in bare]
    raws = [packed(b, codec) if codec else encode(b) for b, codec in zip(bare, codecs, strict=True)]
    taken = [check(block, in_json) for block in blocks(tmp_path, *raws)]
    assert len(taken) == len(raws) and sum(taken) > len(taken) // 2
    for block in blocks(tmp_path, *made):
        check(block, in_json)


def test_numbers_at_their_limits_and_times_of_the_append(tmp_path: Path) -> None:
    far = [record(0, b"a", timestamp=-(2**63)), record(1, b"a", timestamp=2**62)]
    for made in (
        *(batch(r, base_timestamp=r.timestamp) for r in far),
        batch(record(2**62, b"a", timestamp=5), attributes=LOG_APPEND_TIME, max_timestamp=77),
    ):
        (block,) = blocks(tmp_path, made)
        assert check(block, True)


def test_what_is_not_sound_is_left_to_python(tmp_path: Path) -> None:
    whole = encode(batch(record(0, b"abc", b"def"), record(1, b"g", b"h")))
    for at in range(61, len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            (block,) = blocks(tmp_path, sealed(bytes(damaged)))
            found = KernelLines(True).of(block)
            if found is not None:
                assert found == b"".join(line_of_row(row, True) for row in block.rows())
