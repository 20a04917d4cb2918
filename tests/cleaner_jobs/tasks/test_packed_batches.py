"""Compressed batches rebuilt, many at a time: read by the reference, those of the reference."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from crc32c import crc32c

from cleaner_jobs.kernels import rewrite_runs
from cleaner_jobs.kernels.batch_comparison import COMPARED, EXPECTED_COLUMNS, KEPT, LATEST
from cleaner_jobs.kernels.kept_batches import REBUILD, REBUILD_WITH_HORIZON
from cleaner_jobs.kernels.rebuild import rebuild_payloads
from cleaner_jobs.kernels.rewrite_runs import filter_batches
from cleaner_jobs.problems import MiswrittenError
from cleaner_jobs.tasks import packed_batches
from cleaner_jobs.tasks.packed_batches import rebuild_packed
from cleaner_jobs.tasks.rewrite_check import Decided
from cleaner_jobs.tasks.window_reader import digests_of
from storage.codecs.compression import Codec
from storage.codecs.payload_kernels import tools_of_thread
from storage.formats import batch_windows
from storage.formats.batch_columns import KEEP, SUPERSEDED
from storage.formats.batch_windows import Buffers, Window
from tests.cleaner_jobs.kernels.framed import framed, padded
from tests.support.kernel_steps import uncompiled
from tests.support.made_log import keyed, packed
from tests.support.random_batches import random_batches
from tests.support.reference_batch import (
    CODEC_BITS,
    CRC_STARTS_AT,
    HEADER,
    ReferenceBatch,
    ReferenceRecord,
    decode,
    encode,
)
from tests.support.reference_cleaner import rebuilt

HORIZON_MS = 77_777
CODECS = [codec for codec in Codec if codec]


class Case(NamedTuple):
    made: ReferenceBatch
    codec: Codec
    stays: list[bool]

    @property
    def kept(self) -> list[ReferenceRecord]:
        pairs = zip(self.made.records, self.stays, strict=True)
        return [found for found, stays in pairs if stays]

    @property
    def is_given_a_horizon(self) -> bool:
        made = self.made
        has_tombstone = any(r.value is None for r in self.kept)
        return has_tombstone and made.delete_horizon_ms is None and not made.is_control

    def expected(self) -> ReferenceBatch:
        horizon_ms = HORIZON_MS if self.is_given_a_horizon else self.made.delete_horizon_ms
        return rebuilt(self.made, self.kept, horizon_ms)


class RebuiltBatch(NamedTuple):
    batch: bytes | None
    digest: int | None


def random_cases(seed: int, count: int) -> list[Case]:
    chance, cases = Random(seed), []
    for made in random_batches(chance, count):
        stays = [chance.random() < 0.6 for _ in made.records]
        stays[chance.randrange(len(stays))] = True
        cases.append(Case(made, chance.choice(CODECS), stays))
    return cases


def window_and_decisions(cases: Sequence[Case]) -> tuple[Window, Decided]:
    found = framed([packed(case.made, case.codec) for case in cases])
    states = [KEEP if stays else SUPERSEDED for case in cases for stays in case.stays]
    actions = [REBUILD_WITH_HORIZON if c.is_given_a_horizon else REBUILD for c in cases]
    decided = Decided(
        actions=np.array(actions, np.uint8),
        kept_records=np.array([len(case.kept) for case in cases], np.int32),
        states=np.array(states, np.uint8),
        ordinals=np.cumsum([0, *(len(case.stays) for case in cases)], dtype=np.int64),
        horizon_ms=HORIZON_MS,
        rebuilt=np.ones(len(cases), np.bool_),
        recompressed=np.zeros(len(cases), np.bool_),
        places=np.zeros((len(cases), 2), np.int64),
        expected=np.zeros((len(cases), EXPECTED_COLUMNS), np.int64),
    )
    return Window("0.log", found.buffer, 0, found.rows), decided


class Rebuilt(NamedTuple):
    batches: list[RebuiltBatch]
    refused: int
    decided: Decided


def rebuild_all(cases: Sequence[Case], numbers: Sequence[int]) -> Rebuilt:
    window, decided = window_and_decisions(cases)
    found: list[RebuiltBatch] = []
    refused = 0
    for run in rebuild_packed(window, np.array(numbers, np.intp), decided, Buffers()):
        places, digests = run.places.tolist(), iter(run.digests.tolist())
        assert run.numbers.tolist() == list(numbers[len(found) : len(found) + len(places)])
        for (start, end), is_compressed in zip(places, run.is_compressed.tolist(), strict=True):
            batch = None if start < 0 else run.buffer[start:end].tobytes()
            found.append(RebuiltBatch(batch, next(digests) if is_compressed else None))
        assert next(digests, None) is None
        refused += run.refused
    return Rebuilt(found, refused, decided)


@pytest.mark.parametrize("seed", range(25))
def test_batches_are_those_of_the_reference(seed: int) -> None:
    """C-11.10 to C-11.13, and their checksums; only those that are asked for, in their order."""
    cases = random_cases(seed, 10)
    numbers = [number for number in range(10) if number % 3 != 1]
    found, _, decided = rebuild_all(cases, numbers)
    assert len(found) == len(numbers)
    for number, one in zip(numbers, found, strict=True):
        case, expected = cases[number], cases[number].expected()
        assert one.batch is not None
        written = decode(one.batch)
        assert written.attributes & CODEC_BITS == case.codec
        assert replace(written, attributes=expected.attributes) == expected
        assert written.attributes & ~CODEC_BITS == expected.attributes
        assert int.from_bytes(one.batch[17:21], "big") == crc32c(one.batch[CRC_STARTS_AT:])
        records = encode(expected)[HEADER.size :]
        assert [one.digest] == digests_of(padded(records), np.array([[0, len(records)]]))
        columns = decided.expected[number]
        assert columns[KEPT] == len(case.kept)
        assert columns[LATEST] == expected.max_timestamp
    assert not decided.expected[1, COMPARED], "nobody asked for it"


def test_batches_that_kafka_refuses_to_build_are_marked_as_refused() -> None:
    """C-11.14."""
    made = keyed(0, "ab")
    sound = replace(made, producer_id=3, producer_epoch=0, base_sequence=0)
    without = replace(made, base_offset=2, last_offset=3, producer_id=3, producer_epoch=0)
    without = replace(without, records=keyed(2, "cd").records)
    cases = [Case(each, Codec.LZ4, [True, False]) for each in (sound, without)]
    assert [rebuild_all(cases, [number]).refused for number in (0, 1)] == [0, 1]
    assert rebuild_all(cases, [0, 1]).refused == 1


def test_a_batch_in_another_form_is_left_to_be_rebuilt_by_field() -> None:
    made = keyed(0, "ab")
    odd = replace(made, records=tuple(replace(r, headers=((b"\xff", b""),)) for r in made.records))
    plain = keyed(2, "cd")
    cases = [Case(each, Codec.GZIP, [False, True]) for each in (odd, plain)]
    first, second = rebuild_all(cases, [0, 1]).batches
    assert first.batch is None
    assert second.batch is not None
    assert decode(second.batch).records == (plain.records[1],)


def with_a_step_that_flips(monkeypatch: pytest.MonkeyPatch, flip: Callable[..., None]) -> None:
    """Flip something behind rebuild_payloads, of many batches at once and step by step."""

    def flipping(*given: object) -> None:
        rebuild_payloads(*given)  # type: ignore[arg-type]
        flip(*given)

    monkeypatch.setattr(packed_batches, "filter_batches", uncompiled(filter_batches))
    for module in (packed_batches, rewrite_runs):
        monkeypatch.setattr(module, "rebuild_payloads", flipping)


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_come_out_otherwise_are_not_compressed(
    monkeypatch: pytest.MonkeyPatch, codec: Codec
) -> None:
    """What is to be compressed is held against its source before."""

    def flip(*given: Any) -> None:
        out, results = given[4], given[5]
        out[results[0, 1] - 2] ^= 1  # the last byte of a value

    cases = [Case(keyed(0, "ab"), codec, [True, False])]
    with_a_step_that_flips(monkeypatch, flip)
    with pytest.raises(MiswrittenError, match=r"0\.log, byte 0: key, value or headers"):
        rebuild_all(cases, [0])


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_change_once_they_are_decompressed_are_not_compressed(
    monkeypatch: pytest.MonkeyPatch, codec: Codec
) -> None:
    """Even if what is kept of them is the same."""

    def flip(*given: Any) -> None:
        payload, bounds = given[0], given[1]
        payload[bounds[0, 1] - 2] ^= 1  # of the record that goes

    cases = [Case(keyed(0, "ab"), codec, [True, False])]
    with_a_step_that_flips(monkeypatch, flip)
    with pytest.raises(MiswrittenError, match=r"0\.log, byte 0: what it was decompressed to"):
        rebuild_all(cases, [0])


@pytest.mark.parametrize("name", ["FILTERED_BYTES", "KEPT_BYTES"])
@pytest.mark.parametrize("room", [0, 1500, 6000])
def test_the_same_batches_with_little_room_for_many(
    monkeypatch: pytest.MonkeyPatch, name: str, room: int
) -> None:
    cases = random_cases(2, 30)
    numbers = range(len(cases))
    expected = rebuild_all(cases, numbers)
    monkeypatch.setattr(packed_batches, name, room)
    found = rebuild_all(cases, numbers)
    assert found.batches == expected.batches
    assert (found.decided.expected == expected.decided.expected).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_same_bytes_where_libraries_cannot_be_called_by_address(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    cases = random_cases(seed, 12)
    numbers = range(len(cases))
    expected = rebuild_all(cases, numbers).batches
    nothing = np.zeros(5, np.int64)
    tools = tools_of_thread()._replace(addresses=nothing, zlib_functions=nothing)
    for module in (packed_batches, batch_windows):
        monkeypatch.setattr(module, "tools_of_thread", lambda: tools)
    assert rebuild_all(cases, numbers).batches == expected


@pytest.mark.parametrize("room", [1, 2000, 5000])
def test_the_same_batches_with_little_room(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    cases = random_cases(1, 12)
    numbers = range(len(cases))
    expected = rebuild_all(cases, numbers).batches
    monkeypatch.setattr(packed_batches, "PACKED_BYTES", room)
    assert rebuild_all(cases, numbers).batches == expected
