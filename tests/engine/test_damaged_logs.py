"""A sample of the damages of tests/engine/damage, with Kafka's answers; all of them by
`python -m tests.engine.damage`."""

import pytest

from tests.engine.damage.verdicts import WRONG, Kind, compared, verdict
from tests.engine.rules import kept
from tests.engine.rules.kept import Answer

SAMPLE = kept.read("damage")


@pytest.mark.parametrize("name", SAMPLE)
def test_damage_is_told_or_ends_as_in_kafka(name: str) -> None:
    found = verdict(SAMPLE[name])
    assert found.kind not in WRONG, found.difference


def test_the_sample_has_every_kind_of_file() -> None:
    told = " ".join(SAMPLE)
    for kind in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", "epoch-checkpoint"):
        assert kind in told
    assert len(SAMPLE) > 80


def test_a_difference_without_an_error_is_noticed() -> None:
    answer: Answer = next(iter(SAMPLE.values()))
    line = answer.transcript[-1]
    assert compared([line], [line]).kind is Kind.SAME
    assert compared([line], [{**line, "result": None}]).kind is Kind.SILENT
    refused = {"n": line["n"], "op": line["op"], "error": "KafkaException", "state": None}
    assert compared([line], [refused]).kind is Kind.TOLD
