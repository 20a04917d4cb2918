"""Whole rounds over messages of format v0 and v1, against what Kafka made of the same messages."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cleaning.log_report import LEGACY_EMPTIED_NOTE
from compactor.outcome.round_report import LogStatus
from compactor.planning.selection import legacy_horizon_ms
from storage.codecs.compression import Codec
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, Segment, file_name
from storage.formats.record import Record
from tests.compactor.small_rounds import only
from tests.support.legacy_writer import encode_message_set
from tests.support.local_round import LocalRound
from tests.support.made_log import batches_of, make_partition, plan_of, round_of
from tests.support.reference_batch import (
    ReferenceBatch,
    ReferenceRecord,
    decode,
    encode,
)

NEVER = -1  # no segment is that old


def written(root: Path, entries: Sequence[bytes], active_offset: int) -> Path:
    """A partition of one segment of these entries, without index entries, and an active one."""
    partition = make_partition(root / "logs", {active_offset: []})
    for kind, data in ((LOG, b"".join(entries)), (INDEX, b""), (TIME_INDEX, b""), (SNAPSHOT, b"")):
        (partition / file_name(0, kind)).write_bytes(data)
    return partition


def cleaned(
    local: LocalRound, partition: Path, end: int, retention_ms: int = 1000, legacy_ms: int = NEVER
) -> list[bytes]:
    plan = replace(
        plan_of(partition, [[0]], end),
        delete_retention_ms=retention_ms,
        legacy_horizon_ms=legacy_ms,
    )
    report = local.run(round_of(plan, now_ms=10_000))
    assert only(report) == (LogStatus.CLEANED, None)
    assert report.logs[0].notes == ()
    return batches_of(partition, 0)


def records(first_offset: int, keys: str, *times: int) -> list[Record]:
    """A record for each letter; its value is its offset, none for a capital letter."""
    stamps = times or (100,) * len(keys)
    return [
        Record(o, t, k.lower().encode(), None if k.isupper() else b"%d" % o)
        for o, (k, t) in enumerate(zip(keys, stamps, strict=True), first_offset)
    ]


def facts(raw: bytes) -> tuple[int, int, int, int, int, list[int]]:
    """Base offset, last offset delta, attributes, both timestamps, and the timestamps' deltas."""
    made = decode(raw)
    assert (made.leader_epoch, made.producer_id, made.producer_epoch) == (-1, -1, -1)
    assert made.base_sequence == -1
    stamped = [r.timestamp - made.base_timestamp for r in made.records]
    delta = made.last_offset - made.base_offset
    times = made.base_timestamp, made.max_timestamp
    return made.base_offset, delta, made.attributes, *times, stamped


def test_the_confirmed_examples(local: LocalRound, tmp_path: Path) -> None:
    """C-11.12's table, each source followed by what supersedes its dropped records."""
    entries = [
        encode_message_set(0, [Record(1, -1, b"b", b"2")]),
        encode_message_set(1, [Record(3, 150, b"t", None)]),
        encode_message_set(1, records(4, "xyz", 300, 350, 320), Codec.GZIP),
        encode_message_set(0, records(7, "uvwr"), Codec.LZ4),
        encode_message_set(1, records(11, "mnp"), Codec.SNAPPY),
        encode_message_set(1, records(14, "gh"), Codec.GZIP),
        encode_message_set(1, records(16, "xurn")),
    ]
    made = cleaned(local, written(tmp_path, entries, 20), 20)
    assert made[0] == bytes.fromhex(
        "00000000000000010000003affffffff02dc8a576d000000000000ffffffffffffffffffffffffff"
        "ffffffffffffffffffffffffffffffffff00000001100000000262023200"
    )
    assert made[1] == bytes.fromhex(
        "00000000000000030000003bffffffff027371ce9e0040000000000000000000002af80000000000"
        "000096ffffffffffffffffffffffffffff000000011200c3a9010002740100"
    )
    assert facts(made[2]) == (5, 1, 0x0001, 350, 350, [0, -30])
    assert facts(made[3]) == (8, 1, 0x0003, -1, -1, [0, 0])
    assert made[3][61:68] == bytes.fromhex("04224d18604082")  # no longer the 1a of v0
    assert facts(made[4]) == (11, 2, 0x0002, 100, 100, [0, 0])
    assert [r.offset for r in decode(made[4]).records] == [11, 13]
    assert facts(made[5]) == (14, 1, 0x0001, 100, 100, [0, 0])  # E-38: nothing was dropped
    assert [decode(raw).base_offset for raw in made[6:]] == [16, 17, 18, 19]


def test_log_append_time_and_a_tombstone(local: LocalRound, tmp_path: Path) -> None:
    """The last row of C-11.12's table; the deltas are written against the wrapper's time."""
    wrapper = encode_message_set(1, records(0, "abC"), Codec.LZ4, log_append_time_ms=5000)
    entries = [wrapper, encode_message_set(1, records(3, "a"))]
    made = cleaned(local, written(tmp_path, entries, 4), 4, retention_ms=100)
    batch = decode(made[0])
    assert (batch.base_offset, batch.last_offset, batch.attributes) == (1, 2, 0x4B)
    assert (batch.base_timestamp, batch.max_timestamp) == (10_100, 5000)
    assert batch.records == (
        ReferenceRecord(1, 5000, b"b", b"1"),
        ReferenceRecord(2, 5000, b"c", None),
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_a_legacy_tombstone_gets_its_horizon_in_the_round_that_keeps_it(
    local: LocalRound, tmp_path: Path, magic: int
) -> None:
    """E-15."""
    entries = [encode_message_set(magic, records(0, "Tb"), Codec.GZIP)]
    (made,) = map(decode, cleaned(local, written(tmp_path, entries, 2), 2))
    assert (made.delete_horizon_ms, len(made.records)) == (11_000, 2)


@pytest.mark.parametrize(("horizon_ms", "kept"), [(5000, [1]), (4999, [0, 1])])
def test_a_legacy_tombstone_goes_by_the_time_of_its_segment(
    local: LocalRound, tmp_path: Path, horizon_ms: int, kept: list[int]
) -> None:
    """C-6.1: the segment's time is 5000, to the millisecond."""
    partition = written(tmp_path, [encode_message_set(1, records(0, "Tb"))], 2)
    os.utime(partition / file_name(0, LOG), ns=(5_000_999_999, 5_000_999_999))
    made = cleaned(local, partition, 2, legacy_ms=horizon_ms)
    assert [decode(raw).base_offset for raw in made] == kept


def test_the_legacy_horizon() -> None:
    """C-6.1: of the last segment that begins below the first dirty offset, less the retention."""
    segments = [Segment(base, 1, 0, 0, None, ms * 1_000_000 + 999, 1) for base, ms in
                ((0, 9000), (10, 6000), (20, 7000))]  # fmt: skip
    assert legacy_horizon_ms(segments, 0, 1000) == 0
    assert legacy_horizon_ms(segments, 1, 1000) == 8000
    assert legacy_horizon_ms(segments, 20, 1000) == 5000
    assert legacy_horizon_ms(segments, 20, 1001) == 4999
    assert legacy_horizon_ms(segments, 21, 1000) == 6000


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_last_legacy_batch_that_loses_all_its_records_stays_as_an_empty_one(
    local: LocalRound, tmp_path: Path, codec: Codec
) -> None:
    """E-39, C-11.14: Kafka's cleaner stops here; no reader sees a difference, and it is told."""
    kept = encode_message_set(1, records(0, "ab"), Codec.GZIP)
    lost = encode_message_set(1, [Record(2, 170, None, b"n")], codec, log_append_time_ms=180)
    partition = written(tmp_path, [kept, lost], 3)
    for dry_run in (True, False):
        report = local.run(round_of(plan_of(partition, [[0]], 3)), dry_run=dry_run)
        assert report.logs[0].notes == (LEGACY_EMPTIED_NOTE,)
        assert report.logs[0].counts.batches_emptied == 1
    assert only(report) == (LogStatus.CLEANED, None)
    empty = ReferenceBatch(2, 2, -1, 0x08, -1, 180)  # C-11.9
    assert batches_of(partition, 0)[1] == encode(empty)


def test_a_segment_that_is_not_last_may_lose_a_legacy_batch(
    local: LocalRound, tmp_path: Path
) -> None:
    """C-10.6: without a record left it goes."""
    entries = [encode_message_set(1, [Record(0, 170, None, b"n")]),
               encode_message_set(1, records(1, "a"))]  # fmt: skip
    assert [
        decode(raw).base_offset for raw in cleaned(local, written(tmp_path, entries, 2), 2)
    ] == [1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_the_reason_of_damage_names_file_and_position(
    local: LocalRound, tmp_path: Path, magic: int, codec: Codec
) -> None:
    """Every cut, and every flipped byte: the log is set aside and stays as it was."""
    whole = encode_message_set(magic, records(0, "a"), codec)
    broken = encode_message_set(magic, records(1, "b"), codec)
    partition = written(tmp_path, [whole], 2)
    path = partition / file_name(0, LOG)
    damaged = [broken[:cut] for cut in range(1, len(broken))]
    damaged += [broken[:at] + bytes([broken[at] ^ 0x40]) + broken[at + 1 :]
                for at in range(8, len(broken))]  # fmt: skip
    for tail in damaged:
        path.write_bytes(whole + tail)
        report = local.run(round_of(plan_of(partition, [[0]], 2)))
        assert report.logs[0].status is LogStatus.SET_ASIDE
        assert f"{path}, byte {len(whole)}: " in (report.logs[0].reason or "")
        assert path.read_bytes() == whole + tail
