"""Message sets of the old formats, against the builder of the tests, which golden bytes hold."""

import pytest

from storage.codecs.compression import Codec
from storage.formats.record import Record
from storage.log.validation import message_set
from tests.support.legacy_writer import encode_message_set

RECORDS = [Record(40 + i, 1_000 - i, b"key" if i else None, b"v" * 90 * i) for i in range(3)]


@pytest.mark.parametrize("append_time", [None, 5_000])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_they_are_those_of_kafkas_builder(
    magic: int, codec: Codec, append_time: int | None
) -> None:
    made = message_set(RECORDS, magic, codec, append_time)
    assert made == encode_message_set(magic, RECORDS, codec, append_time)
