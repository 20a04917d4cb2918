"""Records of the metadata log, as Kafka 4.3.1's own MetadataRecordSerde wrote them.

`tests/golden/metadata_records.jsonl`: every type and version with every field set, and what Kafka's
own JSON says of it. That every byte is read as Kafka reads it, test_coordinator_records holds.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from storage.formats import metadata_records as records
from storage.formats.metadata_records import MetadataRecord, decode
from storage.formats.partition_metadata import decode_uuid
from storage.formats.record import MalformedRecordError

A = UUID(int=1 << 64 | 2)
GOLDEN = Path(__file__).parents[2] / "golden" / "metadata_records.jsonl"
LINES = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def uuids(texts: Sequence[str] | None) -> tuple[UUID | None, ...]:
    return tuple(map(decode_uuid, texts or ()))


def record_of(name: str, said: Any) -> object:
    """What Kafka's JSON says, as a record; None for one of a kind that is skipped."""
    numbers: Any = {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
    topic_id, log_dirs = decode_uuid(said.get("topicId", "")), uuids(said.get("logDirs"))
    directories = uuids(said.get("directories"))
    match name:
        case "RegisterBrokerRecord":
            features = tuple((f["name"], f["maxSupportedVersion"]) for f in said["features"])
            return (said["brokerId"], said["brokerEpoch"], log_dirs, features)
        case "UnregisterBrokerRecord":
            return (said["brokerId"],)
        case "TopicRecord":
            return (said["name"], topic_id)
        case "PartitionRecord":
            return (said["partitionId"], topic_id, numbers["replicas"], directories)
        case "ConfigRecord":
            resource = said["resourceType"], said["resourceName"]
            return (*resource, said["name"], said["value"])
        case "PartitionChangeRecord":
            return (said["partitionId"], topic_id, numbers["replicas"], directories or None)
        case "RemoveTopicRecord":
            return (topic_id,)
        case "BrokerRegistrationChangeRecord":
            return (said["brokerId"], log_dirs)
        case "ZkMigrationStateRecord":
            return (said["zkMigrationState"],)
        case "BeginTransactionRecord" | "EndTransactionRecord" | "AbortTransactionRecord":
            return ()
    return None


@pytest.mark.parametrize("line", LINES, ids=lambda x: f"{x['name']} {x['version']}")
def test_a_record_is_read_as_kafka_wrote_it(line: Any) -> None:
    whole, expected = bytes.fromhex(line["hex"]), record_of(line["name"], line["json"])
    found = decode(whole)
    assert found == expected
    if found is None:  # of a kind that is skipped, whatever is in it
        return
    assert type(found).__name__ == line["name"]
    for length in range(len(whole)):
        with pytest.raises(MalformedRecordError):
            decode(whole[:length])
    with pytest.raises(MalformedRecordError, match="1 bytes are left"):
        decode(whole + b"\0")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            "010500000000030000000000000001000000000000000201010400000002",
            records.PartitionChangeRecord(3, A, None, None),
        ),
        ("0104000401026e0000", records.ConfigRecord(4, "", "n", None)),
        (
            "01110300000007000000000000000901000101",
            records.BrokerRegistrationChangeRecord(7, ()),
        ),
    ],
)
def test_a_field_that_is_not_there_or_null_says_that_nothing_changes(
    data: str, expected: MetadataRecord
) -> None:
    assert decode(bytes.fromhex(data)) == expected


def test_a_string_of_more_than_126_bytes() -> None:
    """Its length takes two bytes."""
    data = bytes.fromhex("010400020274026ec901") + b"x" * 200 + b"\0"
    assert decode(data) == records.ConfigRecord(2, "t", "n", "x" * 200)


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
        ("010300000000030000000000000001000000000000000200", "null where an array is needed"),
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
