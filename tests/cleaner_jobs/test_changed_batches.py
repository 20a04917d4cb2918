"""Batches that are others than were scanned, under a checksum that fits, are not written out.

Whoever changes a log between scan and rewrite may say anything of lengths and counts: nothing is
read beyond the batch, and nothing of what stands there comes into the log.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from storage.codecs.compression import Codec, compress
from storage.errors import CorruptFileError
from storage.formats.batch_columns import KEEP, SUPERSEDED
from tests.cleaner_jobs.tasks.test_batch_rewriter import rebuilt
from tests.support.made_log import batch, record
from tests.support.reference_batch import encode_parts, encode_record

RECORDS = record(0, b"a", b"x" * 50), record(1, b"b", b"y" * 50), record(2, b"c", b"z" * 50)
FIRST_TIME = 100
AT_ONCE = [1, 13, 64, 5000, 2_000_000, 2**31 - 100]


def varint(number: int) -> bytes:
    rest, out = number << 1, b""
    while rest >= 0x80:
        rest, out = rest >> 7, out + bytes([rest & 0x7F | 0x80])
    return out + bytes([rest])


def value_of(missing: int) -> bytes:
    """A record whose value is longer, by so many bytes, than what there is of it."""
    there = b"z" * 20
    body = b"\0" + varint(20) + varint(2) + b"\x02c" + varint(len(there) + missing) + there
    return varint(len(body) + missing + 1) + body


def key_of(missing: int) -> bytes:
    there = b"c" * 20
    body = b"\0" + varint(20) + varint(2) + varint(len(there) + missing) + there
    return varint(len(body) + missing + 2) + body


def header_of(missing: int) -> bytes:
    there = b"h" * 20
    body = b"\0" + varint(20) + varint(2) + b"\x02c\x02z\x02" + varint(len(there) + missing) + there
    return varint(len(body) + missing + 1) + body


def headers_of(missing: int) -> bytes:
    body = b"\0" + varint(20) + varint(2) + b"\x02c\x02z" + varint(missing)
    return varint(len(body) + 2 * missing) + body


@pytest.mark.parametrize("missing", AT_ONCE)
@pytest.mark.parametrize("lie", [value_of, key_of, header_of, headers_of])
@pytest.mark.parametrize("codec", list(Codec))
def test_a_length_leads_to_nothing_beyond_its_batch(
    tmp_path: Path, codec: Codec, lie: Callable[[int], bytes], missing: int
) -> None:
    made = batch(*RECORDS, attributes=codec)
    sound = b"".join(encode_record(r, 0, FIRST_TIME) for r in RECORDS[:2])
    raw = encode_parts(made, compress(codec, sound + lie(missing)))
    with pytest.raises(CorruptFileError, match="record 2 of 3") as error:
        rebuilt(tmp_path, raw, [SUPERSEDED, KEEP, KEEP])
    assert error.value.position == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_nor_does_one_that_is_to_go(tmp_path: Path, codec: Codec) -> None:
    made = batch(*RECORDS, attributes=codec)
    last = encode_record(RECORDS[2], 0, FIRST_TIME)
    raw = encode_parts(made, compress(codec, value_of(5000) + last + last))
    with pytest.raises(CorruptFileError, match="record 0 of 3"):
        rebuilt(tmp_path, raw, [SUPERSEDED, KEEP, KEEP])


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_left_behind_the_last_record_does_not_go_silently(
    tmp_path: Path, codec: Codec
) -> None:
    made = batch(*RECORDS, attributes=codec)
    four = b"".join(encode_record(r, 0, FIRST_TIME) for r in (*RECORDS, RECORDS[2]))
    raw = encode_parts(made, compress(codec, four))
    with pytest.raises(CorruptFileError, match="left after record 3, the last"):
        rebuilt(tmp_path, raw, [SUPERSEDED, KEEP, KEEP])
