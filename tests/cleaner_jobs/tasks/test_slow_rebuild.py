"""Batches rebuilt field by field: those of the reference, and those that do not parse refused."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from cleaner_jobs.kernels.batch_comparison import (
    BASE,
    COMPARED,
    EXPECTED_COLUMNS,
    FIRST,
    KEPT,
    LAST,
    LATEST,
)
from cleaner_jobs.problems import MiswrittenError
from cleaner_jobs.tasks import slow_rebuild
from cleaner_jobs.tasks.slow_rebuild import rebuild_by_field
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats.batch_columns import (
    ATTRIBUTES,
    IN_MAP,
    KEEP,
    LEGACY,
    SUPERSEDED,
    TOMBSTONE,
    ByteArray,
)
from storage.formats.batch_windows import Window
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from tests.cleaner_jobs.kernels.framed import framed
from tests.support.made_log import batch, keyed, packed
from tests.support.random_batches import random_batches
from tests.support.reference_batch import (
    CODEC_BITS,
    ReferenceBatch,
    ReferenceRecord,
    decode,
    encode,
)
from tests.support.reference_cleaner import rebuilt

HORIZON_MS = 77_777
PATH = "0.log"
ODD_KEYS = (b"\xff", b"\xc3\xa9", b"a\x80", b"plain")  # of headers; the second is UTF-8


def window_of(*raws: bytes) -> Window:
    found = framed(raws)
    return Window(PATH, found.buffer, 0, found.rows)


def states_of(stays: list[bool]) -> ByteArray:
    """What else is known of a record, as of every second one here, is no reason to drop it."""
    kept = KEEP, IN_MAP | TOMBSTONE
    return np.array(
        [kept[number % 2] if one else SUPERSEDED for number, one in enumerate(stays)], np.uint8
    )


def with_odd_headers(chance: Random, made: ReferenceBatch) -> ReferenceBatch:
    records = (
        replace(r, headers=((chance.choice(ODD_KEYS), b"1"), *r.headers)) for r in made.records
    )
    return replace(made, records=tuple(records))


@pytest.mark.parametrize("seed", range(40))
def test_it_is_that_of_the_reference(seed: int) -> None:
    """C-11.10, C-11.11 b. Of several batches in a window each is found by its number."""
    chance = Random(seed)
    sources = [with_odd_headers(chance, made) for made in random_batches(chance, 5)]
    window = window_of(*map(encode, sources))
    for number, made in enumerate(sources):
        stays = [chance.random() < 0.6 for _ in made.records]
        stays[chance.randrange(len(stays))] = True
        kept = [r for r, one in zip(made.records, stays, strict=True) if one]
        has_tombstone = any(r.value is None for r in kept)
        needs = has_tombstone and made.delete_horizon_ms is None and not made.is_control
        given_ms = HORIZON_MS if needs else None
        expected = rebuilt(made, kept, made.delete_horizon_ms if given_ms is None else given_ms)
        found = rebuild_by_field(window, number, states_of(stays), given_ms)
        assert found.batch == encode(expected)
        columns = dict(zip(range(EXPECTED_COLUMNS), found.expected, strict=True))
        assert columns == {
            KEPT: len(kept),
            BASE: expected.base_timestamp,
            LATEST: expected.max_timestamp,
            FIRST: kept[0].offset,
            LAST: kept[-1].offset,
            COMPARED: 1,
        }


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_the_codec_stays(codec: Codec) -> None:
    made = keyed(4, "abc")
    found = rebuild_by_field(
        window_of(packed(made, codec)), 0, states_of([True, False, True]), None
    )
    written = decode(found.batch)
    assert written.attributes & CODEC_BITS == codec
    expected = rebuilt(made, [made.records[0], made.records[2]], None)
    assert replace(written, attributes=0) == expected


def test_a_round_without_horizons_leaves_a_tombstone_without_one() -> None:
    """C-11.8: where the horizon would pass 2^63."""
    made = keyed(4, "aB")
    found = rebuild_by_field(window_of(encode(made)), 0, states_of([True, True]), -1)
    assert decode(found.batch).delete_horizon_ms is None


@pytest.mark.parametrize(
    ("header", "timestamp", "expected"),
    [
        ({}, 100, False),
        ({"producer_id": 3, "producer_epoch": 0, "base_sequence": 0}, 100, False),
        ({"producer_id": 3, "producer_epoch": 0, "base_sequence": -1}, 100, True),
        ({"producer_id": 3, "producer_epoch": -1, "base_sequence": 0}, 100, True),
        ({}, -1, False),
        ({}, -2, True),
    ],
)
def test_what_kafka_refuses_to_build_is_marked_as_refused(
    header: dict[str, int], timestamp: int, expected: bool
) -> None:
    """C-11.14."""
    made = batch(ReferenceRecord(0, timestamp, b"a", b"1"), **header)
    found = rebuild_by_field(window_of(encode(made)), 0, states_of([True]), None)
    assert found.refused is expected


def test_records_that_do_not_parse_are_corrupt() -> None:
    raw = bytearray(encode(keyed(0, "ab")))
    raw[61] += 2  # the length of the first record
    with pytest.raises(CorruptFileError, match=rf"{PATH}, byte 0"):
        rebuild_by_field(window_of(bytes(raw)), 0, states_of([True, True]), None)


def test_a_legacy_batch_comes_here_only_if_it_is_wrong() -> None:
    """Its records were upgraded by us, and are as Kafka writes them."""
    window = window_of(encode(keyed(0, "a")), encode(keyed(1, "b")))
    window.rows[1, ATTRIBUTES] |= LEGACY
    with pytest.raises(CorruptFileError, match="the offsets of its messages do not ascend"):
        rebuild_by_field(window, 1, states_of([True]), None)


def doubled(records: list[Record]) -> list[Record]:
    return [*records, records[-1]]


def of_another_time(records: list[Record]) -> list[Record]:
    return [record._replace(timestamp=record.timestamp + 1) for record in records]


def of_another_value(records: list[Record]) -> list[Record]:
    return [record._replace(value=b"other") for record in records]


@pytest.mark.parametrize("change", [doubled, of_another_time, of_another_value])
def test_what_came_out_otherwise_is_not_passed_on(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[list[Record]], list[Record]]
) -> None:
    monkeypatch.setattr(
        slow_rebuild, "encode_batch", lambda kept, *rest: encode_batch(change(kept), *rest)
    )
    with pytest.raises(MiswrittenError):
        rebuild_by_field(window_of(encode(keyed(0, "ab"))), 0, states_of([True, False]), None)


def test_a_tombstone_that_was_to_get_a_horizon_raises_miswritten() -> None:
    with pytest.raises(MiswrittenError, match="delete horizon"):
        rebuild_by_field(window_of(encode(keyed(0, "A"))), 0, states_of([True]), None)
