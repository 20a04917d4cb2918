"""The references agree with Kafka on every golden log, so they may be believed on others."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.fleet import Kafkas
from tests.golden import corpora
from tests.support.reference_batch import CODEC_BITS, decode, encode, split
from tests.support.reference_cleaner import ActiveProducer, Round, clean
from tests.support.reference_files import SourceSegment, groups, indexes

INDEX_KINDS = (".index", ".timeindex")
MAGIC, LOW_ATTRIBUTES = 16, 22  # positions in a batch
OF_TRANSACTIONS = 0x30  # transactional, control
DAY_MS = 86_400_000  # delete.retention.ms where it is not set
LEAST = 100  # logs, or the question is no longer the right one


@cache
def outcomes() -> dict[str, Any]:
    results = json.loads((corpora.extracted().root / "fleet.json").read_text())["results"]
    return {name: result for name, result in results.items() if result.get("cleaned")}


@cache
def settings() -> dict[str, dict[str, str]]:
    configs: dict[str, dict[str, str]] = json.loads(corpora.extracted().topic_configs.read_text())
    return configs


def config(partition: str, name: str, otherwise: int) -> int:
    return int(settings()[partition.rsplit("-", 1)[0]].get(name, otherwise))


def logs_below(folder: Path, bound: int) -> list[Path]:
    logs = sorted(folder.glob("*.log"))
    return [log for log in logs if int(log.stem) < bound]


def round_of(partition: str) -> Round:
    outcome = outcomes()[partition]
    producers = {
        int(pid): ActiveProducer(entry["epoch"], entry["last_data_offset"])
        for pid, entry in outcome["active_producers"].items()
    }
    return Round(
        first_dirty_offset=outcome["first_dirty_offset"],
        first_uncleanable_offset=outcome["first_uncleanable_offset"],
        now_ms=corpora.now_ms(),
        delete_retention_ms=config(partition, "delete.retention.ms", DAY_MS),
        active_producers=producers,
    )


def is_known_to_the_reference(partition: str) -> bool:
    """Whether a log holds batches of v2 outside of transactions alone, with all its indexes.

    What retention has taken away after the cleaning is not to be seen any more either.
    """
    fleet = corpora.extracted()
    logs = sorted((fleet.before / partition).glob("*.log"))
    if not all(log.with_suffix(kind).exists() for log in logs for kind in INDEX_KINDS):
        return False
    if not (fleet.after / partition / logs[0].name).exists():
        return False
    batches = (raw for log in logs for raw in split(log.read_bytes()))
    return all(raw[MAGIC] == 2 and not raw[LOW_ATTRIBUTES] & OF_TRANSACTIONS for raw in batches)


@pytest.fixture(scope="module")
def known() -> list[str]:
    """Not asked while tests are collected: the archive would be unpacked for that alone."""
    names = [
        name
        for name, kafkas in corpora.outcomes().items()
        if kafkas is Kafkas.CLEANED and is_known_to_the_reference(name)
    ]
    assert len(names) > LEAST
    return names


def each(names: Iterable[str], check: Callable[[str], None]) -> None:
    for name in names:
        try:
            check(name)
        except AssertionError as error:
            error.add_note(name)
            raise


def test_the_reference_keeps_what_kafka_keeps(known: list[str]) -> None:
    each(known, _keeps_what_kafka_keeps)


def _keeps_what_kafka_keeps(partition: str) -> None:
    by, fleet = round_of(partition), corpora.extracted()
    bound = by.first_uncleanable_offset
    before = [
        raw
        for log in logs_below(fleet.before / partition, bound)
        for raw in split(log.read_bytes())
    ]
    after = [
        raw for log in logs_below(fleet.after / partition, bound) for raw in split(log.read_bytes())
    ]
    sources = [decode(raw) for raw in before]
    cleaned, counts = clean(sources, by)
    assert len(cleaned) == len(after)
    by_batch = dict(zip(map(id, sources), before, strict=True))
    for (batch, verbatim), raw in zip(cleaned, after, strict=True):
        if verbatim:
            assert by_batch[id(batch)] == raw
        elif batch.attributes & CODEC_BITS and batch.records:
            assert decode(raw) == batch
        else:
            assert encode(batch) == raw
    assert counts.kept == outcomes()[partition]["messages_written"]
    assert counts.null_keys == outcomes()[partition]["invalid_messages_read"]


def test_the_reference_makes_kafkas_groups_and_indexes(known: list[str]) -> None:
    each(known, _makes_kafkas_groups_and_indexes)


def _makes_kafkas_groups_and_indexes(partition: str) -> None:
    fleet, bound = corpora.extracted(), round_of(partition).first_uncleanable_offset
    segment_bytes = config(partition, "segment.bytes", 1 << 30)
    made = groups(
        [_source(log) for log in logs_below(fleet.before / partition, bound)],
        config(partition, "internal.segment.bytes", segment_bytes),
        config(partition, "segment.index.bytes", 10 << 20),
        bound,
    )
    logs = logs_below(fleet.after / partition, bound)
    assert [group[0].base_offset for group in made] == [int(log.stem) for log in logs]
    interval_bytes = config(partition, "index.interval.bytes", 4096)
    for log in logs:
        expected = indexes(split(log.read_bytes()), int(log.stem), interval_bytes)
        files = (log.with_suffix(suffix) for suffix in (".index", ".timeindex"))
        assert tuple(file.read_bytes() for file in files) == expected


def _source(log: Path) -> SourceSegment:
    sizes = (log.with_suffix(suffix).stat().st_size for suffix in (".log", ".index", ".timeindex"))
    return SourceSegment(int(log.stem), *sizes)
