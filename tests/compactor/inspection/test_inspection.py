"""An inspection counts what a slow and plain reader counts."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from cleaner_jobs.tasks import inspection, resolve
from compactor import api
from compactor.api import InspectOptions, Rules
from compactor.planning import layout
from storage.codecs.compression import Codec
from storage.formats.record import Record
from tests.compactor.inspection.reference_inspection import (
    check_golden_logs,
    inspect_slowly,
    sizes_by_offset,
)
from tests.golden import corpora
from tests.support.legacy_writer import encode_message_set
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    NOW_MS,
    batch,
    index_entry,
    keyed,
    log_of,
    make_partition,
    marker,
    of_producer,
    packed,
    record,
)
from tests.support.random_batches import random_batches
from tests.support.reference_batch import TRANSACTIONAL, ReferenceBatch

GOLDEN = Path(corpora.__file__).parent
HERE = InspectOptions(in_process=True)


def rules(now_ms: int = NOW_MS, **settings: str) -> Rules:
    return Rules(
        settings={"cleanup.policy": "compact", **settings},
        include=".*",
        any_clock=True,
        as_of=now_ms,
        assume_fully_replicated=True,
    )


def test_every_log_that_kafka_wrote_is_counted_as_by_hand() -> None:
    """The golden corpora: every format, codec, transactions, horizons; before and after a clean."""
    fleet = corpora.extracted()
    for log_dir in (fleet.before, fleet.after):
        check_golden_logs(log_dir, fleet, HERE)


@pytest.mark.parametrize("seed", range(8))
def test_batches_by_chance_are_counted_as_by_hand(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "BYTES_PER_KEY", 1)
    monkeypatch.setattr(layout, "HASH_PARTITION_KEYS", 256)
    chance = Random(seed)
    monkeypatch.setattr(inspection, "RUN_RECORDS", chance.choice((5, 40, 1 << 20)))
    monkeypatch.setattr(resolve, "MERGE_ENTRIES", chance.choice((8, 1 << 21)))
    made = [b for b in random_batches(chance, 60) if not b.attributes & TRANSACTIONAL]
    batches = [with_few_keys(chance, b) for b in made]  # so that there are versions
    half = len(batches) // 2
    base = batches[half].base_offset
    first = batches[0].base_offset
    segments: dict[int, list[ReferenceBatch | bytes]] = {
        first: [maybe_packed(chance, b) for b in batches[:half]],
        base: [maybe_packed(chance, b) for b in batches[half:]],
    }
    partition = make_partition(tmp_path, segments)
    (found,) = api.inspect(str(tmp_path), ["orders-0"], rules(), HERE).logs
    inspect_slowly(partition, first, base, NOW_MS).check(found)


def with_few_keys(chance: Random, batch: ReferenceBatch) -> ReferenceBatch:
    records = tuple(
        replace(record, key=chance.choice((None, b"", b"a", b"b", b"\xff\x00", b"k" * 80)))
        for record in batch.records
    )
    return replace(batch, records=records)


def maybe_packed(chance: Random, batch: ReferenceBatch) -> ReferenceBatch | bytes:
    codec = chance.choice(list(Codec))
    return batch if codec is Codec.NONE else packed(batch, codec)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("append_time_ms", [None, 5_000])
def test_legacy_messages_are_counted_as_by_hand(
    tmp_path: Path, magic: int, codec: Codec, append_time_ms: int | None
) -> None:
    records = [
        Record(offset, 1_000 + 7 * offset if magic else -1, key, value, ())
        for offset, (key, value) in enumerate(
            [(b"a", b"1"), (b"b", None), (None, b"2"), (b"a", None), (b"c", b"x" * 300)]
        )
    ]
    later = [record._replace(offset=record.offset + 5) for record in records]
    old, new = (encode_message_set(magic, r, codec, append_time_ms) for r in (records, later))
    partition = make_partition(tmp_path, {0: [], 5: [], 10: [keyed(10, "aBd")], 13: []})
    log_of(partition, 0).write_bytes(old)
    log_of(partition, 5).write_bytes(new)
    (found,) = api.inspect(str(tmp_path), (), rules(), HERE).logs
    inspect_slowly(partition, 0, 13, NOW_MS).check(found)


def test_records_of_aborted_transactions_are_no_versions(tmp_path: Path) -> None:
    partition = make_partition(
        tmp_path,
        {
            0: [
                of_producer(keyed(0, "ab"), 7),
                of_producer(keyed(2, "aC"), 8),
                marker(4, 7, ABORT_KEY),
                marker(5, 8, COMMIT_KEY),
                of_producer(keyed(6, "a"), 7),
            ],
            7: [],
        },
    )
    log_of(partition, 0).with_suffix(".txnindex").write_bytes(index_entry(7, 0, 4, 2))
    (found,) = api.inspect(str(tmp_path), (), rules(), HERE).logs
    inspect_slowly(partition, 0, 0, NOW_MS).check(found)  # the open one holds up the first segment
    assert found.aborted_records == 2 and found.keys.records == 3
    (open_one,) = found.open_transactions
    assert (open_one.producer_id, open_one.first_offset) == (7, 6)


def golden_record(name: str, version: int) -> bytes:
    """By Kafka's own serializer, with every field set."""
    lines = map(json.loads, (GOLDEN / "coordinator_records.jsonl").read_text().splitlines())
    (found,) = (
        bytes.fromhex(line["hex"])
        for line in lines
        if (line["name"], line["version"], line["made"]) == (name, version, "filled")
    )
    return found


def test_an_open_transaction_is_told_with_its_transactional_id(tmp_path: Path) -> None:
    """As `__transaction_state` beside it has it, in bytes of Kafka's own serializer."""
    producer_id = 2**40 + 1  # of the golden bytes
    make_partition(tmp_path, {0: [of_producer(keyed(0, "ab"), producer_id)]})
    key = golden_record("transaction.generated.TransactionLogKey", 0)
    value = golden_record("transaction.generated.TransactionLogValue", 1)
    make_partition(tmp_path, {0: [batch(record(0, key, value))]}, "__transaction_state-7")
    state, orders = api.inspect(str(tmp_path), (), rules(), HERE).logs
    (txn,) = orders.open_transactions
    assert (txn.producer_id, txn.transactional_id) == (producer_id, "transactionalId-ä1")
    assert txn.blocked_bytes == orders.bytes
    assert [k.key for k in state.most_bytes] == [
        "TransactionLog: transactionalId transactionalId-ä1"
    ]


def test_committed_offsets_are_told_by_group_and_by_topic(tmp_path: Path) -> None:
    """By the names in their keys; other records of a group count for it, too."""

    def key(*names: str) -> bytes:
        kind = b"\0\1" if len(names) == 2 else b"\0\2"
        texts = b"".join(len(n.encode()).to_bytes(2, "big") + n.encode() for n in names)
        return kind + texts + b"\0\0\0\5" * (len(names) - 1)

    keys = [
        key("g", "t"),
        key("g", "u"),
        key("hä", "t"),
        key("g"),
        key("g", "t"),
        b"\0\1\0\7x",
        b"",
    ]
    values = [b"v" * 9 * i for i in range(len(keys))]
    first = batch(*(record(i, k, v) for i, (k, v) in enumerate(zip(keys, values, strict=True))))
    second = batch(*(record(i + 10, k, None) for i, k in enumerate(keys)))
    partition = make_partition(
        tmp_path, {0: [first, packed(second, Codec.ZSTD)]}, "__consumer_offsets-3"
    )
    (found,) = api.inspect(str(tmp_path), (), rules(), HERE).logs
    sizes: dict[bytes, list[int]] = {}
    for offset, size in sizes_by_offset(partition):
        sizes.setdefault(keys[offset % 10], []).append(size)

    def total(*indexes: int) -> tuple[int, int]:
        of_all = [size for own in {keys[i] for i in indexes} for size in sizes[own]]
        return len(of_all), sum(of_all)

    groups = [(heavy.key, (heavy.versions, heavy.bytes)) for heavy in found.heavy_groups]
    topics = [(heavy.key, (heavy.versions, heavy.bytes)) for heavy in found.heavy_topics]
    assert groups == [("g", total(0, 1, 3)), ("hä", total(2))]
    assert topics == [("t", total(0, 2)), ("u", total(1))]
