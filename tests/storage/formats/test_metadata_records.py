"""Records of the metadata log, as Kafka 4.3.1's own MetadataRecordSerde wrote them."""

from uuid import UUID

import pytest

from storage.formats import metadata_records as records
from storage.formats.metadata_records import decode
from storage.formats.record import MalformedRecordError

A = UUID(int=1 << 64 | 2)
D, E = UUID(int=3 << 64 | 4), UUID(int=5 << 64 | 6)

GOLDEN = {
    "register of version 0": (
        (
            "010000000000070000000000000001000000000000000200000000000000090202500268"
            "23840000000202660001000200000100"
        ),
        records.RegisterBrokerRecord(7, 9, (), (("f", 2),)),
    ),
    "register of version 1": (
        (
            "010001000000070000000000000001000000000000000200000000000000090202500268"
            "238400000002026600010002000272010100"
        ),
        records.RegisterBrokerRecord(7, 9, (), (("f", 2),)),
    ),
    "register of version 2": (
        (
            "010002000000070100000000000000010000000000000002000000000000000902025002"
            "682384000000020266000100020000010100"
        ),
        records.RegisterBrokerRecord(7, 9, (), (("f", 2),)),
    ),
    "register of version 3": (
        (
            "010003000000070100000000000000010000000000000002000000000000000902025002"
            "682384000000020266000100020002720101010021030000000000000003000000000000"
            "000400000000000000050000000000000006"
        ),
        records.RegisterBrokerRecord(7, 9, (D, E), (("f", 2),)),
    ),
    "register of version 4": (
        (
            "010004000000070100000000000000010000000000000002000000000000000902025002"
            "682384000000020266000100020000010102002103000000000000000300000000000000"
            "040000000000000005000000000000000601110200000000000000050000000000000006"
        ),
        records.RegisterBrokerRecord(7, 9, (D, E), (("f", 2),)),
    ),
    "unregister of version 0": (
        "01010000000007000000000000000900",
        records.UnregisterBrokerRecord(7),
    ),
    "topic of version 0": (
        "0102000474c3a90000000000000001000000000000000200",
        records.TopicRecord("té", A),
    ),
    "partition of version 0": (
        (
            "010300000000030000000000000001000000000000000203000000010000000202000000"
            "0101020000000200000001000000040000000501000101"
        ),
        records.PartitionRecord(3, A, (1, 2), ()),
    ),
    "change of version 0": (
        (
            "010500000000030000000000000001000000000000000203000502000000020104000000"
            "020209030000000200000001"
        ),
        records.PartitionChangeRecord(3, A, (2, 1), None),
    ),
    "partition of version 1": (
        (
            "010301000000030000000000000001000000000000000203000000010000000202000000"
            "010102000000020000000100000004000000050300000000000000030000000000000004"
            "0000000000000005000000000000000601000101"
        ),
        records.PartitionRecord(3, A, (1, 2), (D, E)),
    ),
    "change of version 1": (
        (
            "010501000000030000000000000001000000000000000204000502000000020104000000"
            "020209030000000200000001082103000000000000000500000000000000060000000000"
            "0000030000000000000004"
        ),
        records.PartitionChangeRecord(3, A, (2, 1), (E, D)),
    ),
    "partition of version 2": (
        (
            "010302000000030000000000000001000000000000000203000000010000000202000000"
            "010102000000020000000100000004000000050300000000000000030000000000000004"
            "00000000000000050000000000000006030001010105020000000202050200000001"
        ),
        records.PartitionRecord(3, A, (1, 2), (D, E)),
    ),
    "change of version 2": (
        (
            "010502000000030000000000000001000000000000000205000502000000020104000000"
            "020209030000000200000001060502000000010821030000000000000005000000000000"
            "000600000000000000030000000000000004"
        ),
        records.PartitionChangeRecord(3, A, (2, 1), (E, D)),
    ),
    "change_leader of version 0": (
        "010500000000030000000000000001000000000000000201010400000002",
        records.PartitionChangeRecord(3, A, None, None),
    ),
    "config of version 0": (
        "0104000202740f636c65616e75702e706f6c69637908636f6d7061637400",
        records.ConfigRecord(2, "t", "cleanup.policy", "compact"),
    ),
    "config_null of version 0": ("0104000401026e0000", records.ConfigRecord(4, "", "n", None)),
    "remove of version 0": (
        "0109000000000000000001000000000000000200",
        records.RemoveTopicRecord(A),
    ),
    "registration_change of version 0": (
        "01110000000007000000000000000901000101",
        records.BrokerRegistrationChangeRecord(7, ()),
    ),
    "registration_change of version 1": (
        "01110100000007000000000000000901000101",
        records.BrokerRegistrationChangeRecord(7, ()),
    ),
    "registration_change of version 2": (
        ("0111020000000700000000000000090200010102110200000000000000030000000000000004"),
        records.BrokerRegistrationChangeRecord(7, (D,)),
    ),
    "registration_change of version 3": (
        (
            "011103000000070000000000000009030001010211020000000000000003000000000000"
            "000403110200000000000000030000000000000004"
        ),
        records.BrokerRegistrationChangeRecord(7, (D,)),
    ),
    "begin of version 0": ("011700010002026e", records.BeginTransactionRecord()),
    "end of version 0": ("01180000", records.EndTransactionRecord()),
    "abort of version 0": ("0119000100020272", records.AbortTransactionRecord()),
    "noop of version 0": ("01140000", None),
    "feature of version 0": ("010c000266000100", None),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_record_is_read_as_kafka_wrote_it(name: str) -> None:
    data, expected = GOLDEN[name]
    assert decode(bytes.fromhex(data)) == expected


def test_a_string_of_more_than_126_bytes() -> None:
    """Its length takes two bytes."""
    data = bytes.fromhex("010400020274026ec901") + b"x" * 200 + b"\0"
    assert decode(data) == records.ConfigRecord(2, "t", "n", "x" * 200)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_record_that_is_cut_short_or_goes_on_is_refused(name: str) -> None:
    data, expected = GOLDEN[name]
    if expected is None:
        return  # of a kind that is skipped, whatever is in it
    whole = bytes.fromhex(data)
    for length in range(len(whole)):
        with pytest.raises(MalformedRecordError):
            decode(whole[:length])
    with pytest.raises(MalformedRecordError, match="1 bytes are left"):
        decode(whole + b"\0")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "a metadata record: 1 bytes expected, 0 left"),
        ("020200", "metadata frame of version 2, expected 1"),
        ("010400", "1 bytes expected, 0 left"),
        ("010401", "ConfigRecord of version 1: versions up to 0 are known"),
        ("010303", "PartitionRecord of version 3: versions up to 2 are known"),
        ("01ffffffffff", "an unsigned varint goes on after 5 bytes"),
        ("0104000200", "null where a string is needed"),
        ("01040002ff", "1 bytes expected, 0 left"),
        ("0104000202ff", "a string is not UTF-8"),
        ("01030000000003000000000000000100000000000000020f00", "an array of 14 is cut short"),
    ],
)
def test_what_is_no_record_is_refused_in_words(data: str, problem: str) -> None:
    with pytest.raises(MalformedRecordError, match=problem):
        decode(bytes.fromhex(data))


def test_a_record_needs_a_value() -> None:
    with pytest.raises(MalformedRecordError, match="without a value"):
        decode(None)


@pytest.mark.parametrize("data", ["01e80763deadbeef", "011d0000000007"])
def test_a_kind_that_nobody_knows_is_skipped_whatever_its_version(data: str) -> None:
    """V-6: the second is UnregisterControllerRecord (29), of Kafka 4.4."""
    assert decode(bytes.fromhex(data)) is None


def test_a_tag_of_a_later_kafka_is_skipped() -> None:
    topic = bytes.fromhex("01020002740000000000000001000000000000000201630278 79".replace(" ", ""))
    assert decode(topic) == records.TopicRecord("t", A)
