"""Rounds over random logs leave what the plain-list cleaner leaves, however the work is cut.

Once with the sizes that are used, once with all of them so small that windows hold a batch or less,
every key has turns and parts of its own, and each group is joined from pieces.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleaner_jobs import messages
from cleaner_jobs.tasks import batch_rewriter, packed_batches, resolve, scan, window_reader
from cleaner_jobs.tasks import task as tasks
from compactor.outcome.round_report import Counts, LogStatus
from compactor.planning import layout
from storage.codecs.compression import Codec
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.formats import batch_windows, checkpoint
from storage.formats.batch_windows import Buffers
from tests.support.local_round import LocalRound, open_local_round
from tests.support.made_log import (
    MTIME_NS,
    NOW_MS,
    RETENTION_MS,
    files_of,
    make_partition,
    packed,
    plan_of,
    round_of,
)
from tests.support.reference_batch import (
    CODEC_BITS,
    HORIZON,
    LOG_APPEND_TIME,
    ReferenceBatch,
    ReferenceRecord,
    decode,
    encode,
    split,
)
from tests.support.reference_cleaner import ActiveProducer, Cleaned, Round, clean
from tests.support.reference_files import indexes

INTERVAL_BYTES = 0  # an index entry for every batch but the first: all may be cut at
KEYS = [None, b"", b"a", b"b", b"c", b"a key of more than one word"]
VALUES = [None, None, b"", b"1", b"a value" * 9]
HEADERS: list[tuple[tuple[bytes, bytes | None], ...]] = [
    (),
    (),
    ((b"h", b"1"), (b"", None), (b"h", b"")),
    (("é".encode(), b"\xff"), (b"\xff1", b"x")),
]
HORIZONS = [NOW_MS - 1, NOW_MS, NOW_MS + 1, 0, -1]
YES_OR_NO: st.SearchStrategy[bool] = st.booleans()
GAPS = st.sampled_from([0, 0, 0, 1, 5, 1000])


@dataclass(frozen=True)
class MadeLog:
    segments: dict[int, list[bytes]]  # the last one is active
    groups: list[list[int]]
    first_dirty_offset: int
    producers: dict[int, ActiveProducer]

    @property
    def first_uncleanable_offset(self) -> int:
        return list(self.segments)[-1]

    def cleanable(self) -> list[bytes]:
        return [raw for base in list(self.segments)[:-1] for raw in self.segments[base]]


@st.composite
def batches(draw: st.DrawFn, first_offset: int) -> bytes:
    records, offset = [], first_offset
    for _ in range(draw(st.integers(0, 6))):
        offset += draw(GAPS)
        time = draw(st.sampled_from([-1, 0, 100, 105, 90, NOW_MS]))
        key, value = draw(st.sampled_from(KEYS)), draw(st.sampled_from(VALUES))
        headers = draw(st.sampled_from(HEADERS))
        records.append(ReferenceRecord(offset, time, key, value, headers))
        offset += 1
    attributes = draw(st.sampled_from([0, 0, LOG_APPEND_TIME]))
    base_timestamp = records[0].timestamp if records else -1
    if draw(YES_OR_NO) and records:
        attributes |= HORIZON
        base_timestamp = draw(st.sampled_from(HORIZONS))
    producer = draw(st.sampled_from([(-1, -1, -1), (-1, -1, -1), (7, 1, 0), (8, 0, 2**31 - 1)]))
    made = ReferenceBatch(
        first_offset,
        max(offset - 1, first_offset) + draw(GAPS),
        draw(st.sampled_from([-1, 0, 3])),
        attributes,
        base_timestamp,
        max((record.timestamp for record in records), default=draw(st.sampled_from([-1, 70]))),
        *producer,
        records=tuple(records),
    )
    return packed(made, draw(st.sampled_from([*Codec, Codec.NONE]))) if records else encode(made)


@st.composite
def logs(draw: st.DrawFn) -> MadeLog:
    segments: dict[int, list[bytes]] = {}
    groups: list[list[int]] = []
    offset = draw(GAPS)
    for _ in range(draw(st.integers(1, 4))):
        base_offset = offset
        segments[base_offset] = []
        for _ in range(draw(st.integers(0, 4))):
            raw = draw(batches(offset + draw(GAPS)))
            segments[base_offset].append(raw)
            offset = decode(raw, with_records=False).last_offset + 1
        offset += draw(GAPS) + (offset == base_offset)
        if draw(YES_OR_NO) and groups:
            groups[-1].append(base_offset)
        else:
            groups.append([base_offset])
    segments[offset] = []
    headers = [decode(raw, with_records=False) for of in segments.values() for raw in of]
    of_producers = [header for header in headers if header.producer_id >= 0]
    producers = {
        header.producer_id: ActiveProducer(header.producer_epoch, header.last_offset)
        for header in of_producers
        if draw(YES_OR_NO)
    }
    if draw(YES_OR_NO):
        producers[9] = ActiveProducer(0, None)
    first_dirty_offset = draw(st.one_of(st.just(0), st.integers(0, offset)))
    return MadeLog(segments, groups, first_dirty_offset, producers)


CRAMPED: list[tuple[object, str, int]] = [
    (batch_windows, "WINDOW_BYTES", 80),
    (batch_windows, "WINDOW_BATCHES", 2),
    (batch_windows, "PAYLOAD_BYTES", 40),
    (window_reader, "CHUNK_BYTES", 250),
    (window_reader, "RUN_BATCHES", 2),
    (packed_batches, "PACKED_BYTES", 40),
    (packed_batches, "FILTERED_BYTES", 150),
    (packed_batches, "KEPT_BYTES", 400),
    (scan, "PART_RECORDS", 4),
    (scan, "MAX_PART_OFFSETS", 1500),
    (resolve, "MERGE_ENTRIES", 2),
    (batch_rewriter, "OUTPUT_BYTES", 100),
    (layout, "STRETCH_BYTES", 150),
    (layout, "TASK_BYTES", 50),
    (layout, "LOG_COST_BYTES", 1),
    (layout, "HASH_PARTITION_KEYS", 1),
    (layout, "MAX_HASH_PARTITION_BITS", 3),
]


@contextmanager
def opened(made: MadeLog, cramped: bool) -> Iterator[tuple[LocalRound, Path]]:
    """The log on disk and a round that may be run; Hypothesis has no use for pytest's fixtures."""
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patches:
        if cramped:
            patches.setattr(tasks, "WORKER_BUFFERS", Buffers())
            for module, name, value in CRAMPED:
                patches.setattr(module, name, value)
        made_round = open_local_round(Path(root, "work"), patches)
        made_round.cores = 2 if cramped else 1
        partition = make_partition(Path(root, "logs"), made.segments, interval_bytes=INTERVAL_BYTES)
        yield made_round, partition


def plan_for(made: MadeLog, partition: Path) -> messages.LogPlan:
    producers = [messages.ActiveProducer(pid, *known) for pid, known in made.producers.items()]
    whole = plan_of(
        partition,
        made.groups,
        made.first_uncleanable_offset,
        made.first_dirty_offset,
        producers=producers,
    )
    return replace(whole, index_interval_bytes=INTERVAL_BYTES)


def expected_of(made: MadeLog) -> tuple[dict[int, list[Cleaned]], Counts]:
    """The batches of each group, and the numbers of the report."""
    sources = [decode(raw) for raw in made.cleanable()]
    by = Round(
        made.first_dirty_offset,
        made.first_uncleanable_offset,
        NOW_MS,
        RETENTION_MS,
        made.producers,
    )
    cleaned, counts = clean(sources, by)
    bounds = [*(group[0] for group in made.groups), made.first_uncleanable_offset]
    by_group = {
        base: [c for c in cleaned if base <= c.batch.base_offset < end]
        for base, end in pairwise(bounds)
    }
    emptied = sum(not c.batch.records for c in cleaned)
    return by_group, Counts(
        records_read=sum(len(batch.records) for batch in sources),
        records_kept=counts.kept,
        dropped_superseded=counts.superseded,
        dropped_tombstone=counts.expired_tombstones,
        dropped_null_key=counts.null_keys,
        batches_read=len(sources),
        batches_kept=len(cleaned),
        batches_rebuilt=sum(not c.verbatim for c in cleaned) - emptied,
        batches_emptied=emptied,
    )


def assert_segment(
    partition: Path, group: list[int], cleaned: list[Cleaned], made: MadeLog
) -> None:
    path = partition / file_name(group[0], LOG)
    raws = list(split(path.read_bytes()))
    assert [decode(raw).base_offset for raw in raws] == [c.batch.base_offset for c in cleaned]
    sources = {decode(raw).base_offset: raw for raw in made.cleanable()}
    for raw, wanted in zip(raws, cleaned, strict=True):
        if wanted.verbatim:
            assert raw == sources[wanted.batch.base_offset]
            continue
        assert decode(raw) == wanted.batch
        if not wanted.batch.attributes & CODEC_BITS:
            assert raw == encode(wanted.batch)
    offset_index, time_index = indexes(raws, group[0], INTERVAL_BYTES)
    assert (partition / file_name(group[0], INDEX)).read_bytes() == offset_index
    assert (partition / file_name(group[0], TIME_INDEX)).read_bytes() == time_index
    for kind in (LOG, INDEX, TIME_INDEX):  # C-14.3
        mtime_ns = os.stat(partition / file_name(group[0], kind)).st_mtime_ns
        assert mtime_ns == MTIME_NS + group[-1] * 7_000_000


def check_round(made: MadeLog, cramped: bool) -> None:
    with opened(made, cramped) as (made_round, partition):
        before = files_of(partition)
        round_plan = round_of(plan_for(made, partition))
        by_group, counts = expected_of(made)
        dry = made_round.run(round_plan, dry_run=True).logs[0]
        assert (dry.status, dry.reason) == (LogStatus.WOULD_CLEAN, None)
        assert dry.counts == counts
        assert files_of(partition) == before
        report = made_round.run(round_plan).logs[0]
        assert (report.status, report.reason) == (LogStatus.CLEANED, None)
        assert report.counts == counts
        assert (dry.bytes_after, dry.segments_after) == (report.bytes_after, report.segments_after)
        for group in made.groups:
            assert_segment(partition, group, by_group[group[0]], made)
        active = made.first_uncleanable_offset
        left = {g[0] for g in made.groups} | {active}
        names = {file_name(b, k) for b in left for k in (LOG, INDEX, TIME_INDEX, SNAPSHOT)}
        after = files_of(partition)
        assert set(after) == names
        for kind in (LOG, INDEX, TIME_INDEX, SNAPSHOT):
            assert after[file_name(active, kind)] == before[file_name(active, kind)]
        entries = checkpoint.read(os.path.join(partition.parent, checkpoint.CLEANER_OFFSET))
        assert entries == {("orders", 0): active}


@given(logs())
@settings(max_examples=40, deadline=None)
def test_a_round_leaves_what_the_reference_leaves(made: MadeLog) -> None:
    check_round(made, cramped=False)


@given(logs())
@settings(max_examples=60, deadline=None)
def test_however_the_work_is_cut(made: MadeLog) -> None:
    check_round(made, cramped=True)
