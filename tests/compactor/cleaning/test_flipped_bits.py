"""A bit that falls over in memory while batches are written anew: the run notices, the log stays.

Each case changes one bit of one batch at one moment, once, and nothing else: in what was read after
its checksum was held, in what is to be written before it has one, or before it is compressed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from crc32c import crc32c
from numpy.typing import NDArray

from cleaner_jobs.kernels import rewrite_runs
from cleaner_jobs.messages import ActiveProducer
from cleaner_jobs.tasks import batch_rewriter, packed_batches, scan, slow_rebuild, window_reader
from compactor.outcome.round_report import LogStatus
from storage.codecs.compression import Codec
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.formats import batch_windows
from storage.formats.record import Record
from tests.compactor.small_rounds import only
from tests.support.kernel_steps import uncompiled
from tests.support.legacy_writer import encode_message_set
from tests.support.local_round import LocalRound
from tests.support.made_log import batch, files_of, keyed, make_partition, packed, plan_of, round_of
from tests.support.reference_batch import CRC_STARTS_AT, ReferenceBatch, ReferenceRecord, encode

VALUE, HEADER, KEY = b"value-of-b", b"header-of-b", b"\x02b\x14value"  # of the record that stays
END = 8  # of what is cleaned; the active segment begins there
ACTIVE = ActiveProducer(7, 0, 1)


class Flip(NamedTuple):
    """One bit of the first buffer in which a text is found."""

    text: bytes
    at: int  # from the start of the text
    bit: int = 1

    def in_buffer(self, buffer: NDArray[np.uint8], length: int) -> bool:
        found = bytes(buffer[:length]).find(self.text)
        if found >= 0:
            buffer[found + self.at] ^= self.bit
        return found >= 0


FLIPS = {
    "value": Flip(VALUE, 3),
    "header": Flip(HEADER, 3),
    "timestamp": Flip(KEY, -2, 2),  # the last byte of its delta: before that of the offset
}


class Once:
    """Stands in the place of a function, and does something before or after one of its calls."""

    def __init__(
        self,
        real: Callable[..., Any],
        before: Callable[..., bool] | None = None,
        after: Callable[..., bool] | None = None,
    ) -> None:
        self._real, self._before, self._after = real, before, after
        self.done = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._before and not self.done:
            self.done = self._before(*arguments)
        result = self._real(*arguments, **named)
        if self._after and not self.done:
            self.done = self._after(result, *arguments)
        return result


def kept_record(offset: int, header_key: bytes = b"h") -> ReferenceRecord:
    return ReferenceRecord(offset, 5000, b"b", VALUE, ((header_key, HEADER),))


def source_batch(header_key: bytes = b"h") -> ReferenceBatch:
    """Of producer 7: the first record goes, since segment 4 has a later one of its key."""
    return batch(
        ReferenceRecord(0, 100, b"a", b"1"),
        kept_record(1, header_key),
        leader_epoch=3,
        producer_id=7,
        producer_epoch=0,
        base_sequence=5,
    )


def partition_of(local: LocalRound, entries: Sequence[bytes]) -> Path:
    """Entries, which take the offsets 0 to 3 at most, and a batch that supersedes a."""
    root = local.work_dir.parent
    last = encode(keyed(4, "ac"))
    partition = make_partition(root / "logs", {4: [last], END: [keyed(END, "z")]})
    for kind, data in ((LOG, b"".join(entries)), (INDEX, b""), (TIME_INDEX, b""), (SNAPSHOT, b"")):
        (partition / file_name(0, kind)).write_bytes(data)
    return partition


def check_refused(
    local: LocalRound, partition: Path, arm: Callable[[], Once], producers: Sequence[Any] = ()
) -> None:
    """Nothing is flipped before the rewrite begins."""
    flips: list[Once] = []
    local.before["rewrite"] = lambda: flips.append(arm())
    plan = plan_of(partition, [[0, 4]], END, producers=producers)
    before = files_of(partition)
    status, reason = only(local.run(round_of(plan)))
    assert flips[0].done, "the bit was not met"
    assert status in (LogStatus.FAILED, LogStatus.SET_ASIDE), status
    assert reason is not None and str(partition) in reason
    assert files_of(partition) == before


def put(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, **around: Any) -> Once:
    once = Once(getattr(module, name), **around)
    monkeypatch.setattr(module, name, once)
    return once


@pytest.fixture(params=["in a run of a kernel", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """How plain batches are rewritten; the module whose steps that takes."""
    if request.param == "step by step":
        monkeypatch.setattr(window_reader, "pread_address", lambda: 0)
        return batch_rewriter
    monkeypatch.setattr(batch_rewriter, "rewrite_plain", uncompiled(rewrite_runs.rewrite_plain))
    return rewrite_runs


# rebuilt without compression


@pytest.mark.parametrize("what", FLIPS)
@pytest.mark.parametrize("moment", ["read", "written"])
def test_of_a_batch_that_is_rebuilt(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, way: Any, what: str, moment: str
) -> None:
    flip = FLIPS[what]

    def arm() -> Once:
        if moment == "read":
            return put(
                monkeypatch,
                way,
                "rewrite_batches",
                before=lambda buffers, *_: flip.in_buffer(buffers[0], 300),
            )
        return put(
            monkeypatch,
            way,
            "rewrite_batches",
            after=lambda result, *given: flip.in_buffer(given[5], result[0]),
        )

    check_refused(local, partition_of(local, [encode(source_batch())]), arm)


BYTES_OF_HEADER = {
    "base offset": 7,
    "leader epoch": 15,
    "attributes": 22,
    "last offset delta": 26,
    "base timestamp": 34,
    "max timestamp": 42,
    "producer id": 50,
    "producer epoch": 52,
    "base sequence": 56,
    "records count": 60,
}


@pytest.mark.parametrize("at", BYTES_OF_HEADER.values(), ids=BYTES_OF_HEADER)
def test_of_the_header_of_a_batch_that_is_rebuilt(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, way: Any, at: int
) -> None:
    def turn(_: object, *given: Any) -> bool:
        given[5][at] ^= 8
        return True

    partition = partition_of(local, [encode(source_batch())])
    check_refused(local, partition, lambda: put(monkeypatch, way, "rewrite_batches", after=turn))


@pytest.mark.parametrize("at", BYTES_OF_HEADER.values(), ids=BYTES_OF_HEADER)
def test_of_the_header_of_a_batch_that_is_emptied(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, way: Any, at: int
) -> None:
    """It stays for its producer alone: no record of it is counted anywhere."""
    source = replace(source_batch(), records=source_batch().records[:1])

    def turn(_: object, *given: Any) -> bool:
        given[5][at] ^= 8
        return True

    partition = partition_of(local, [encode(source)])
    check_refused(
        local, partition, lambda: put(monkeypatch, way, "rewrite_batches", after=turn), [ACTIVE]
    )


@pytest.mark.parametrize("moment", ["read", "written"])
@pytest.mark.parametrize("at", [7, 15, 50], ids=["base offset", "leader epoch", "producer id"])
def test_of_a_batch_that_is_copied(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, way: Any, moment: str, at: int
) -> None:
    """Its checksum is that of its source; offset and leader epoch stand before it."""
    copied = encode(replace(source_batch(), records=source_batch().records[1:], base_offset=1))

    def turn_read(buffers: Any, *_: Any) -> bool:
        buffers[0][at] ^= 1
        return True

    def turn_written(_: object, *given: Any) -> bool:
        given[5][at] ^= 1
        return True

    around: dict[str, Any] = {"before": turn_read} if moment == "read" else {"after": turn_written}
    partition = partition_of(local, [copied, encode(keyed(2, "a"))])
    check_refused(local, partition, lambda: put(monkeypatch, way, "rewrite_batches", **around))


# rebuilt and compressed


@pytest.fixture(params=["many in a kernel", "step by step"])
def filtering(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How compressed batches are filtered; what a kernel does not take goes step by step anyhow."""
    if request.param == "step by step":
        no_room = 0, rewrite_runs.NO_ROOM, 0
        monkeypatch.setattr(packed_batches, "filter_batches", lambda *_: no_room)
    else:
        steps = uncompiled(rewrite_runs.filter_batches)
        monkeypatch.setattr(packed_batches, "filter_batches", steps)


def put_in_filtering(monkeypatch: pytest.MonkeyPatch, **around: Any) -> Once:
    """In the place of rebuild_payloads, for compressed batches."""
    once = put(monkeypatch, packed_batches, "rebuild_payloads", **around)
    monkeypatch.setattr(rewrite_runs, "rebuild_payloads", once)
    return once


@pytest.mark.parametrize("what", FLIPS)
@pytest.mark.parametrize("moment", ["decompressed", "filtered", "compressed"])
@pytest.mark.parametrize("codec", [codec for codec in Codec if codec], ids=lambda c: c.name)
@pytest.mark.usefixtures("filtering")
def test_of_a_batch_that_is_compressed_again(
    local: LocalRound,
    monkeypatch: pytest.MonkeyPatch,
    codec: Codec,
    moment: str,
    what: str,
) -> None:
    flip = FLIPS[what]

    def in_payloads(*given: Any) -> bool:
        return flip.in_buffer(given[0], int(given[1].max()))

    def in_filtered(_: object, *given: Any) -> bool:
        return flip.in_buffer(given[4], int(given[5][:, 1].max()))

    def in_kept(_: object, kept: Any, *__: Any) -> bool:
        return flip.in_buffer(kept[0], int(kept[1][:, 1].max()))

    def arm() -> Once:
        if moment == "decompressed":
            return put_in_filtering(monkeypatch, before=in_payloads)
        if moment == "filtered":
            return put_in_filtering(monkeypatch, after=in_filtered)
        return put(monkeypatch, packed_batches, "pack_batches", before=in_kept)

    check_refused(local, partition_of(local, [packed(source_batch(), codec)]), arm)


@pytest.mark.parametrize("at", BYTES_OF_HEADER.values(), ids=BYTES_OF_HEADER)
def test_of_the_header_of_a_batch_that_is_compressed_again(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Before it got its checksum."""

    def turn(_: object, *given: Any) -> bool:
        out, (start, end) = given[2], given[3][0].tolist()
        out[start + at] ^= 8
        checked = out[start + CRC_STARTS_AT : end].tobytes()
        out[start + CRC_STARTS_AT - 4 : start + CRC_STARTS_AT] = list(
            crc32c(checked).to_bytes(4, "big")
        )
        return True

    partition = partition_of(local, [packed(source_batch(), Codec.ZSTD)])
    check_refused(
        local, partition, lambda: put(monkeypatch, packed_batches, "pack_batches", after=turn)
    )


# not in the form that Kafka writes


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP], ids=lambda c: c.name)
@pytest.mark.parametrize("field", ["value", "timestamp", "headers", "offset"])
def test_of_a_batch_that_is_rebuilt_by_field(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, field: str, codec: Codec
) -> None:
    turned: dict[str, Any] = {
        "value": b"value-of-c",
        "timestamp": 5001,
        "headers": (),
        "offset": 2,
    }

    def turn(kept: list[Record], *_: Any) -> bool:
        kept[0] = kept[0]._replace(**{field: turned[field]})
        return True

    raw = packed(replace(source_batch("é".encode()), last_offset=2), codec)
    check_refused(
        local,
        partition_of(local, [raw]),
        lambda: put(monkeypatch, slow_rebuild, "encode_batch", before=turn),
    )


# of format v0 and v1


@pytest.mark.parametrize("moment", ["upgraded", "written"])
@pytest.mark.parametrize(
    "form", [(0, Codec.NONE), (1, Codec.NONE), (0, Codec.GZIP), (1, Codec.GZIP)]
)
@pytest.mark.parametrize("what", ["value", "timestamp"])
def test_of_legacy_messages(
    local: LocalRound,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    form: tuple[int, Codec],
    what: str,
) -> None:
    flip, (magic, codec) = FLIPS[what], form
    times = (100, 5000) if magic else (-1, -1)
    records = [Record(0, times[0], b"a", b"1"), Record(1, times[1], b"b", VALUE)]

    def in_upgraded(result: Any, *_: Any) -> bool:
        return flip.in_buffer(result[1], 300)

    def in_written(result: Any, *given: Any) -> bool:
        if codec:
            return flip.in_buffer(given[4], int(given[5][:, 1].max()))
        return flip.in_buffer(given[5], result[0])

    def arm() -> Once:
        if moment == "upgraded":
            return put(monkeypatch, batch_windows, "upgrade", after=in_upgraded)
        if codec:
            return put(monkeypatch, packed_batches, "rebuild_payloads", after=in_written)
        return put(monkeypatch, batch_rewriter, "rewrite_batches", after=in_written)

    check_refused(local, partition_of(local, [encode_message_set(magic, records, codec)]), arm)


# a group that several tasks rewrite


@pytest.mark.parametrize("what", FLIPS)
def test_of_a_piece_of_a_group(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, way: Any, what: str
) -> None:
    monkeypatch.setattr(scan, "PART_RECORDS", 2)
    local.cores = 4
    flip = FLIPS[what]
    partition = partition_of(local, [encode(keyed(0, "d")), encode(moved(source_batch(), 1))])

    def in_written(result: Any, *given: Any) -> bool:
        return flip.in_buffer(given[5], result[0])

    check_refused(
        local, partition, lambda: put(monkeypatch, way, "rewrite_batches", after=in_written)
    )


def moved(made: ReferenceBatch, by: int) -> ReferenceBatch:
    records = tuple(replace(r, offset=r.offset + by) for r in made.records)
    offsets = {"base_offset": made.base_offset + by, "last_offset": made.last_offset + by}
    return replace(made, records=records, **offsets)
