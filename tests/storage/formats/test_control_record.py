"""Keys and values of control records (F-6.1)."""

import pytest

from storage.formats.control_record import (
    ControlType,
    decode_coordinator_epoch,
    decode_type,
)
from storage.formats.record import MalformedRecordError
from storage.formats.record_batch import decode_header, decode_records
from tests.storage.kafka_batches import COMMIT_MARKER


def test_kafkas_marker_is_read() -> None:
    header = decode_header(COMMIT_MARKER, 0, "0.log")
    (record,) = decode_records(COMMIT_MARKER, header, "0.log", 0)
    assert decode_type(record.key) is ControlType.COMMIT
    assert decode_type(record.key).is_marker
    assert decode_coordinator_epoch(record.value) == 347


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("00000000", ControlType.ABORT),
        ("00070001", ControlType.COMMIT),  # a later version
        ("0000000299", ControlType.LEADER_CHANGE),
        ("00000006", ControlType.KRAFT_VOTERS),
        ("00000007", ControlType.UNKNOWN),
        ("0000ffff", ControlType.UNKNOWN),
    ],
)
def test_types_of_keys(key: str, kind: ControlType) -> None:
    assert decode_type(bytes.fromhex(key)) is kind
    assert kind.is_marker == (kind in (0, 1))


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\0\0\0", b"\xff\xff\0\0"])
def test_keys_that_are_none(key: bytes | None) -> None:
    with pytest.raises(MalformedRecordError, match="control record key"):
        decode_type(key)


def test_values_of_later_versions_may_be_longer_but_not_shorter() -> None:
    assert decode_coordinator_epoch(bytes.fromhex("0001 00000005 ffff")) == 5
    for value in (None, b"", bytes(5), b"\xff\xff" + bytes(4)):
        with pytest.raises(MalformedRecordError, match="marker value"):
            decode_coordinator_epoch(value)
