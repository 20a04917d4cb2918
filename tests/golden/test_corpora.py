"""The corpora hold what they are named for, by hand counts and by the bytes of Kafka's outcome."""

from collections import Counter

import pytest

from tests.conformance.fleet import Kafkas
from tests.golden import corpora
from tests.golden.make_corpora import (
    EVERYTHING_SEEDS,
    LEGACY_SEEDS,
    RANDOM_SEEDS,
    TXN_SEEDS,
    edge_cases,
)
from tests.oracle import compare
from tests.support.reference_batch import (
    CODEC_BITS,
    CONTROL,
    HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    decode,
    split,
)

SIZE_LIMIT = 5_000_000
EMPTY_BATCH_SIZE = 61
MAGIC_AT = 16


def bases(partition: str, folder: str = "after") -> list[int]:
    logs = (corpora.extracted().root / folder / partition).glob("*.log")
    return sorted(int(path.name.removesuffix(".log")) for path in logs)


def cleaned(partition: str) -> list[bytes]:
    """The batches of all segments but the active one."""
    logs = sorted((corpora.extracted().after / partition).glob("*.log"))
    return [raw for log in logs[:-1] for raw in split(log.read_bytes())]


def test_the_archive_is_small_and_whole() -> None:
    assert corpora.ARCHIVE.stat().st_size < SIZE_LIMIT
    names = {name.rsplit("-", 1)[0] for name in corpora.partitions()}
    assert names == {
        *edge_cases(),
        *(f"random-{seed}" for seed in RANDOM_SEEDS),
        *(f"legacy-{seed}" for seed in LEGACY_SEEDS),
        *(f"txn-{seed}" for seed in TXN_SEEDS),
        *(f"everything-{seed}" for seed in EVERYTHING_SEEDS),
    }


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("e27-last-of-producer-0", [None, 2, None]),  # run C: empty, both, empty
        ("e27-not-yet-expired-0", [None, 2]),
        ("e28-expired-0", [2]),
        ("e28-newer-batch-0", [2, 1]),
        ("e29-no-longer-last-0", [2, 1]),
        ("e09-horizon-not-reached-0", [3, 1]),
        ("e10-horizon-reached-0", [2, 1]),
        ("c10.5-last-batch-alone-in-segment-0", [1, None]),
        ("e67-gap-before-the-bound-0", [2]),
    ],
)
def test_batches_hold_so_many_records(partition: str, expected: list[int | None]) -> None:
    """None is an empty batch of 61 bytes (C-11.9)."""
    found = [(len(decode(raw).records) or None, len(raw)) for raw in cleaned(partition)]
    assert [count for count, _ in found] == expected
    assert all(size == EMPTY_BATCH_SIZE for count, size in found if count is None)


def told(partition: str) -> str:
    """The cleaned segments. Of each batch its base offset, T for transactional, C for control or P,
    the producer, = and its records, + for a horizon; behind them the entries of a `.txnindex`.
    """
    folder, words = corpora.extracted().after / partition, []
    for log in sorted(folder.glob("*.log"))[:-1]:
        for raw in split(log.read_bytes()):
            batch = decode(raw)
            kind = "P" if batch.producer_id >= 0 else ""
            kind = "T" if batch.attributes & TRANSACTIONAL else kind
            kind = "C" if batch.attributes & CONTROL else kind
            producer = "" if batch.producer_id < 0 else str(batch.producer_id)
            has_horizon = "+" if batch.attributes & HORIZON else ""
            words.append(f"{batch.base_offset}{kind}{producer}={len(batch.records)}{has_horizon}")
        index = log.with_suffix(".txnindex")
        if index.exists():
            words.append(f"<{entries_of(index.read_bytes())}>")
        words.append("/")
    return " ".join(words[:-1])


def entries_of(data: bytes) -> str:
    """Producer, first and last offset of each entry, by hand from the layout (F-11.1)."""
    assert len(data) % 34 == 0
    found = []
    for at in range(0, len(data), 34):
        fields = [int.from_bytes(data[at + i : at + i + 8], "big") for i in (2, 10, 18)]
        found.append(":".join(map(str, fields)))
    return " ".join(found)


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("e40-committed-latest-0", "0T7=2 2C7=1"),
        ("e41-committed-superseded-0", "0T7=0 2C7=1 3=2"),  # last of its producer
        ("e42-committed-first-round-0", "2C7=1 3P7=2"),  # E-41
        ("e42-committed-after-1-rounds-reached-0", "2C7=1+ 3P7=2 6=1"),
        ("e42-committed-after-2-rounds-not-reached-0", "2C7=1+ 3P7=2 8=1"),
        ("e42-committed-after-2-rounds-reached-0", "3P7=2 8=1"),  # E-43
        ("e49-commit-bumps-epoch-2-0", "2C7=0 3=2 8=1"),  # E-43: protected
        ("e44-aborted-first-round-0", "2C7=1 3P7=1 <7:0:2>"),
        ("e44-aborted-after-1-rounds-reached-0", "2C7=1+ 3P7=1 5=1"),  # E-45
        ("e44-aborted-after-2-rounds-reached-0", "3P7=1 7=1"),
        ("e46-abort-without-data-first-round-0", "0C7=1+ 1=2"),
        ("e46-abort-without-data-after-1-rounds-not-reached-0", "0C7=1+ 1=2 4=1"),
        ("e46-abort-without-data-after-1-rounds-reached-0", "0C7=0 1=2 4=1"),
        ("e47-open-in-second-segment-0", "2=2 / 4=2 6T7=2 / 8=2"),
        ("e47-one-open-one-aborted-0", "4=2 8C7=1 <7:6:8> / 9T8=2 11T7=2 / 13C7=1 14=2 <7:11:13>"),
        ("e48-last-batch-aborted-0-0", "0=2 2T7=0 4C7=1 <7:2:4>"),
        ("e48-last-batch-aborted-3-0", "0=2 2T7=0 4C7=1 10=1 <7:2:4>"),
        ("e49-abort-bumps-epoch-0-0", "0=2 4C7=1 <7:2:4>"),
        ("e49-abort-bumps-epoch-1-0", "0=2 4C7=1+ 6=1"),
        ("e49-abort-bumps-epoch-3-0", "0=2 4C7=0 10=1"),
        ("e49-epoch-goes-on-1-0", "2C7=1+ 5C7=1+ 6=4 11=1"),
        ("e49-epoch-goes-on-2-0", "5C7=0 6=4 13=1"),  # of the epoch before: not protected
        (
            "e50-one-group-0",
            "4T8=2 9T8=1 10C7=1 12C8=1 14C7=1 15T7=2 17C7=1 <7:2:10 7:11:14>",
        ),
        (
            "e50-groups-0",
            "4T8=2 / / 9T8=1 10C7=1 <7:2:10> / 12C8=1 / 14C7=1 15T7=2 17C7=1 <7:11:14>",
        ),
        ("e51-abort-in-active-segment-0", "0=2 2T7=0 6=1"),
        ("e51-commit-in-active-segment-0", "2T7=3 6=1"),
        ("e52-not-transactional-0", "0P7=2 4C7=1 5P7=1 7P7=1 <7:2:4>"),
        ("c7.11-map-start-0-0", "1C1=1 2=1 3T1=1 4C1=1 <1:0:1>"),  # run P
        ("c7.11-map-start-4096-0", "1C1=1 3T1=1 4C1=1 <1:0:1>"),
        ("c8.2-log-start-6-0", "0=2 2T7=0 6C7=1 7=1 8T8=0 10C8=1 11=1 <7:2:6 8:8:10>"),
        ("c8.2-log-start-7-0", "0=2 2T7=3 6C7=1+ 7=1 8T8=0 10C8=1 11=1 <8:8:10>"),
        ("c8.5-other-types-2-0", "2C=1 3C=1 4C=2 6=2 11=1"),
        ("run-g-0-0", "0T1=0 2C1=1 3T2=0 5C2=1 7C3=1 8T3=0 9C3=1 10=3 <2:3:5 3:6:7>"),
        ("run-g-1-0", "0T1=0 2C1=1 3T2=0 5C2=1 7C3=1+ 8T3=0 9C3=1 10=3 14=1 <2:3:5>"),
        ("run-g-3-0", "0T1=0 2C1=1 3T2=0 5C2=1 8T3=0 9C3=1 10=3 18=1 <2:3:5>"),
        ("run-g-expired-1-0", "2C1=1 5C2=1 7C3=1+ 9C3=1 10=3 14=1 <2:3:5>"),
    ],
)
def test_transactions_become_what_the_rules_say(partition: str, expected: str) -> None:
    """E-40 to E-52 by hand, from the table of C-22.3; `/` stands between segments."""
    assert told(partition) == expected


def test_an_invalid_checkpoint_is_repaired_though_the_log_is_not_taken() -> None:
    """C-4.2."""
    entries = compare.checkpoint_entries(corpora.extracted().after)
    for name, before in (("beyond-the-end", 99), ("below-log-start", 0)):
        partition = f"c4.2-repaired-though-not-taken-{name}-0"
        assert compare.checkpoint_entries(corpora.extracted().before)[partition] == before
        assert entries[partition] == 1
        assert corpora.outcomes()[partition] is Kafkas.LEFT


def test_every_kind_of_outcome_is_there_more_than_once() -> None:
    fleet, seen = corpora.extracted(), Counter[str]()
    for partition, outcome in corpora.outcomes().items():
        if outcome is not Kafkas.CLEANED:
            continue
        logs = (fleet.before / partition).glob("*.log")
        old = {raw for log in logs for raw in split(log.read_bytes())}
        seen["merged"] += len(bases(partition)) < len(bases(partition, "before"))
        seen["emptied segment"] += any(
            not log.stat().st_size for log in (fleet.after / partition).glob("*.log")
        )
        for raw in cleaned(partition):
            if raw[MAGIC_AT] < 2:
                continue  # of a segment that the round did not reach
            batch, verbatim = decode(raw, with_records=False), raw in old
            codec = f"codec {batch.attributes & CODEC_BITS}"
            seen[f"verbatim {codec}" if verbatim else f"rebuilt {codec}"] += 1
            seen["log append time"] += bool(batch.attributes & LOG_APPEND_TIME) and not verbatim
            seen["empty batch"] += len(raw) == EMPTY_BATCH_SIZE
            seen["horizon"] += batch.delete_horizon_ms is not None
            seen["horizon now"] += batch.delete_horizon_ms == corpora.now_ms()
    codecs = {f"{how} codec {codec}" for how in ("verbatim", "rebuilt") for codec in range(5)}
    others = {"merged", "emptied segment", "log append time", "empty batch", "horizon"}
    assert {kind for kind, count in seen.items() if count > 4} >= codecs | others, seen
