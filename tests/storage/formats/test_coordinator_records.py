"""Records of the internal topics, as Kafka 4.3.1's own serializers and JSON converters wrote them.

`tests/golden/coordinator_records.jsonl`: every type and version, empty and with every field set.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from storage.formats.coordinator_records import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    decode_key,
    decode_metadata,
    decode_value,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "coordinator_records.jsonl"
LINES = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


METADATA_LINES = [
    json.loads(line)
    for line in GOLDEN.with_name("metadata_records.jsonl").read_text(encoding="utf-8").splitlines()
]


def topic_of(line: Any) -> str:
    return TRANSACTION_STATE if line["name"].startswith("transaction.") else CONSUMER_OFFSETS


def key_of(line: Any) -> bytes:
    return int(line["type"]).to_bytes(2, "big")


def in_json(value: Any) -> Any:
    """As Kafka's converters have it: bytes in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: in_json(own) for name, own in value.items()}
    return [in_json(own) for own in value] if isinstance(value, list) else value


@pytest.mark.parametrize("line", LINES, ids=lambda x: f"{x['name']} {x['version']} {x['made']}")
def test_every_type_and_version_says_what_kafka_says(line: Any) -> None:
    raw, name = bytes.fromhex(line["hex"]), line["name"].rpartition(".")[2]
    if name.endswith("Key"):
        found = decode_key(topic_of(line), key_of(line) + raw[2:])  # on disk the type stands first
    else:
        found = decode_value(topic_of(line), key_of(line), raw)
        assert found.version == line["version"]
    assert found.problem is None
    assert found.name == name.removesuffix("Key").removesuffix("Value")
    assert in_json(found.fields) == line["json"]


@pytest.mark.parametrize("line", METADATA_LINES, ids=lambda x: f"{x['name']} {x['version']}")
def test_every_record_of_the_metadata_log_says_what_kafka_says(line: Any) -> None:
    raw = bytes.fromhex(line["hex"])
    record_type, found = decode_metadata(raw)
    assert (record_type, found.version, found.problem) == (line["type"], line["version"], None)
    assert found.name == line["name"]
    assert in_json(found.fields) == line["json"]
    for data in (*(raw[:end] for end in range(len(raw))), raw + b"\0"):
        assert decode_metadata(data)[1].problem is not None


def test_metadata_records_of_later_versions_are_told_and_no_error() -> None:
    assert decode_metadata(b"\x02\x02\x00")[1].problem == "frame of version 2 is not known"
    assert decode_metadata(b"\x01\x63\x00")[1].problem == "type 99 is not known"
    problem = decode_metadata(b"\x01\x02\x01")[1].problem
    assert problem == "version 1 is not known: versions up to 0 are"


@pytest.mark.parametrize("line", LINES, ids=lambda x: f"{x['name']} {x['version']} {x['made']}")
def test_what_is_cut_short_anywhere_is_told_and_no_error(line: Any) -> None:
    raw, is_key = bytes.fromhex(line["hex"]), line["name"].endswith("Key")
    whole = key_of(line) + raw[2:] if is_key else raw
    for data in (*(whole[:end] for end in range(len(whole))), whole + b"\0"):
        if is_key:
            found = decode_key(topic_of(line), data)
        else:
            found = decode_value(topic_of(line), key_of(line), data)
        assert found.fields is None and found.problem


def test_a_type_or_version_that_is_not_known_is_told() -> None:
    assert decode_key(CONSUMER_OFFSETS, b"\0\x63\0").problem == "type 99 is not known"
    value = decode_value(CONSUMER_OFFSETS, b"\0\x01", b"\0\x09\0")
    assert (value.name, value.version) == ("OffsetCommit", 9)
    assert value.problem == "version 9 is not known: versions up to 4 are"
    assert decode_value(CONSUMER_OFFSETS, b"\0\x63", b"\0\0").problem == (
        "the type of its record is not known"
    )


def test_every_schema_of_both_coordinators_has_golden_bytes() -> None:
    assert len({line["name"] for line in LINES}) == 46
