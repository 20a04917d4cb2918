"""The log directories of the crash matrix, and the run over each of them that is cut short.

Made of reference batches. Offsets, groups and what becomes of each record are told beside them.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.cleaning.swapper import GroupSwapper
from compactor.jobs.engines import Engine
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.originals.originals_keeper import open_keeper
from compactor.originals.undo import UndoStatus, undo_run
from compactor.outcome.round_report import CleaningReport, LogStatus
from compactor.planning import layout
from compactor.planning.round_plan import RoundPlan
from compactor.recovery.log_dir_recovery import recover_log_dir
from compactor.settings.config import Config, load_config, parse_topic_configs
from storage.file_names import LOG, SNAPSHOT, TXN_INDEX, file_name
from storage.formats import checkpoint, clean_shutdown, partition_metadata, producer_snapshot
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.log.log_dir import list_partition, log_end_offset
from storage.log.producer_state import ExpiryClock, load_producer_state
from tests.compactor.plan_logs import plan_log_dirs
from tests.support.local_round import engine_of, open_local_round
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    batch,
    index_entry,
    marker,
    of_producer,
    record,
    write_segment,
)
from tests.support.reference_batch import HORIZON, ReferenceBatch, encode

NOW_MS = 10_000
PAST_MS = 5_000  # a delete horizon that has passed
TOPIC_ID = UUID(int=1)
INTERVAL_BYTES = 100
KEPT = "kept"
FAR, FARTHER = 2**31 + 10, 2 * 2**31 + 20

Batches = Sequence[bytes | ReferenceBatch]
TopicConfigs = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Story:
    """A log directory and how a run goes over it."""

    name: str
    build: Callable[[Path], None]
    topic_configs: TopicConfigs
    groups: Mapping[str, Sequence[Sequence[int]]]  # what the plan has to be, by partition
    in_pieces: bool = False  # several tasks rewrite a group, and what they leave is joined
    all_wait: bool = False  # no group is swapped in before all are finished
    is_undone: bool = False  # a run has kept its originals: cut short is what brings them back
    local: bool = False  # the local engine's workers do the tasks
    kafka_rounds: int = 1  # until Kafka's cleaner has done what one run of ours does (C-16.2)
    statuses: Sequence[LogStatus] = (LogStatus.CLEANED,)  # in the report of the run


def plain(first_offset: int, keys: str, value_bytes: int = 40) -> ReferenceBatch:
    """One record for each letter; a capital one is a tombstone."""
    return batch(
        *(
            record(
                first_offset + i,
                letter.lower().encode(),
                None if letter.isupper() else b"%s%d" % (letter.encode(), first_offset + i)
                + b"." * value_bytes,
                timestamp=100 + (first_offset + i) % 1000,
            )
            for i, letter in enumerate(keys)
        )
    )  # fmt: skip


def expired(offset: int, key: str) -> ReferenceBatch:
    """A tombstone that an earlier round has given its horizon."""
    return replace(plain(offset, key), attributes=HORIZON, base_timestamp=PAST_MS)


def timed(made: ReferenceBatch, timestamp_ms: int) -> ReferenceBatch:
    records = tuple(replace(record, timestamp=timestamp_ms) for record in made.records)
    return replace(made, base_timestamp=timestamp_ms, max_timestamp=timestamp_ms, records=records)


ORDERS: Mapping[int, Batches] = {
    # the first group: three sources, of which the first two have a transaction index
    0: [
        plain(0, "ab"),  # b0 is read for ever
        of_producer(plain(2, "c"), 1),  # aborted at 8
        of_producer(plain(3, "g"), 3),
        marker(4, 3, ABORT_KEY),
        plain(5, "eh"),
    ],
    7: [of_producer(plain(7, "d"), 2), marker(8, 1, ABORT_KEY), plain(9, "E")],
    10: [marker(10, 2, COMMIT_KEY), plain(11, "fa")],
    # nothing of the second is left: k goes with its tombstone, a and x are superseded
    13: [plain(13, "aaxk", 180), marker(17, 5, ABORT_KEY, PAST_MS)],
    18: [expired(18, "K"), plain(19, "a")],
    # of the third only 20 has something left: m goes with its tombstone
    20: [plain(20, "anoxpqx")],
    27: [plain(27, "mma"), marker(30, 6, ABORT_KEY, PAST_MS)],
    31: [expired(31, "M")],
    # the fourth supersedes, and loses one record
    32: [
        plain(32, "axrsts", 100),
        # by which the markers at 17 and 30 are no longer their producers' last words
        of_producer(plain(38, "v"), 5),
        of_producer(plain(39, "w"), 6),
        marker(40, 5, COMMIT_KEY),
        marker(41, 6, COMMIT_KEY),
    ],
    42: [plain(42, "ab"), of_producer(plain(44, "u"), 9)],
}
ORDERS_ABORTED: Mapping[int, Sequence[tuple[int, int, int, int]]] = {
    0: [(3, 3, 4, 2)],
    7: [(1, 2, 8, 7)],
    13: [(5, 13, 17, 17)],
    27: [(6, 27, 30, 30)],
}
WAITING: Mapping[int, Batches] = {
    # the first group keeps z and b
    0: [plain(0, "kazm", 180)],
    4: [plain(4, "ab", 180)],
    # of the second only 6 has something left: k goes with its tombstone, behind its end
    6: [plain(6, "xaax", 180)],
    10: [expired(10, "K"), plain(11, "a")],
    # nothing of the third is left
    12: [plain(12, "acad", 180)],
    16: [plain(16, "cd", 180)],
    # the three last ones supersede; m, of the first group, goes with its tombstone
    18: [plain(18, "acdy", 200)],
    22: [expired(22, "M"), plain(23, "ef", 200)],
    25: [plain(25, "eghi", 220)],
    29: [plain(29, "jjkh", 250)],
    33: [plain(33, "a")],
}
PAYMENTS: Mapping[int, Batches] = {
    0: [plain(0, "abc")],
    3: [plain(3, "Ab")],
    5: [plain(5, "d")],
}


def _orders(root: Path) -> None:
    write_partition(root / "orders-0", ORDERS, ORDERS_ABORTED)
    write_partition(root / "payments-0", PAYMENTS)
    write_checkpoints(root)
    checkpoint.write(str(root / checkpoint.CLEANER_OFFSET), {("payments", 0): 0})


def _joined(root: Path) -> None:
    write_partition(root / "orders-0", ORDERS, ORDERS_ABORTED)
    write_checkpoints(root)


def _waiting(root: Path) -> None:
    write_partition(root / "waiting-0", WAITING)
    write_checkpoints(root)


def _done(story: Story, root: Path) -> None:
    """A log directory after the run, which has kept its originals."""
    story.build(root)
    work_dir = root.with_name("first-run")
    run(story, root, work_dir, keeps=True)
    shutil.rmtree(work_dir)


def _retained(root: Path) -> None:
    """Of the one log the first two segments go, of the other one all, so that it rolls."""
    log: Mapping[int, Batches] = {
        0: [timed(plain(0, "abc"), 1000)],
        3: [timed(plain(3, "def"), 2000)],
        6: [timed(plain(6, "agh"), 7000)],
        9: [timed(plain(9, "bij"), 8000)],
    }
    write_partition(root / "retained-0", log, {0: [(5, 0, 1, 1)], 3: [(5, 2, 4, 4)]})
    write_partition(root / "rolled-0", {base: log[base] for base in (0, 3)})
    for name in ("retained-0", "rolled-0"):
        (root / name / LEADER_EPOCH_CHECKPOINT).write_text("0\n3\n1 0\n3 3\n5 6\n")
    (root / "rolled-0" / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n1 0\n3 3\n")
    write_checkpoints(root)


def _split(root: Path) -> None:
    """One segment becomes three; no batch of it has the base offset of the source."""
    far: Batches = [plain(3, "abc"), plain(FAR, "ad"), plain(FARTHER, "be")]
    write_partition(root / "split-0", {0: far[:1], FARTHER + 2: [plain(FARTHER + 2, "a")]}, {}, far)
    write_checkpoints(root)


COMPACT = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "1000",
    "index.interval.bytes": str(INTERVAL_BYTES),
}
NEVER_CLEANED = COMPACT | {
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "1",
    "retention.ms": "4000",
}
ORDERS_CONFIGS = {"orders": COMPACT | {"segment.bytes": "1400"}, "payments": COMPACT}
ORDERS_GROUPS = {"orders-0": [[0, 7, 10], [13, 18], [20, 27, 31], [32]], "payments-0": [[0, 3]]}
# the first two are swapped in as one, the third alone, the last three as one
WAITING_GROUPS = {"waiting-0": [[0, 4], [6, 10], [12, 16], [18, 22], [25], [29]]}
_OF_RUNS = (
    Story("orders", _orders, ORDERS_CONFIGS, ORDERS_GROUPS, local=True),
    Story("joined", _joined, ORDERS_CONFIGS, {"orders-0": ORDERS_GROUPS["orders-0"]},
          in_pieces=True, local=True),
    Story("retained", _retained, {"retained": NEVER_CLEANED, "rolled": NEVER_CLEANED}, {},
          statuses=(LogStatus.PASSED_OVER,)),
    Story("waiting", _waiting, {"waiting": COMPACT | {"segment.bytes": "1500"}}, WAITING_GROUPS,
          all_wait=True),
    Story("split", _split, {"split": COMPACT}, {"split-0": [[0]]}, local=True, kafka_rounds=2),
)  # fmt: skip

STORIES = (
    *_OF_RUNS,
    *(
        replace(
            story,
            name=f"{story.name}-undone",
            build=partial(_done, story),
            groups={},
            in_pieces=False,
            is_undone=True,
        )
        for story in _OF_RUNS
        if story.name in {"joined", "retained", "waiting"}
    ),
)


def cut_short(
    story: Story,
    root: Path,
    work_dir: Path,
    after_split: Callable[[], None],
    tasks: Engine | None = None,
) -> None:
    """What is recorded of a story; it has to end well when nothing is cut short.

    tasks: what runs them; None: this process.
    """
    if story.is_undone:
        (kept,) = root.with_name(KEPT).iterdir()
        undone = undo_run(str(kept))
        assert {report.status for report in undone} == {UndoStatus.UNDONE}, undone
        return
    report = run(story, root, work_dir, after_split=after_split, tasks=tasks)
    assert not [log.reason for log in report.logs if log.status not in story.statuses]


def run(
    story: Story,
    root: Path,
    work_dir: Path,
    now_ms: int = NOW_MS,
    after_split: Callable[[], None] = lambda: None,
    keeps: bool = False,
    tasks: Engine | None = None,
) -> CleaningReport:
    """What `compactor run` does, without Spark. keeps: its originals, beside the log directory."""
    with _patched(story) as monkeypatch, lock_log_dirs([str(root)]):
        recover_log_dir(str(root))
        plan = split_overflowing(
            planned(story, root, now_ms), lambda: planned(story, root, now_ms), Splitting()
        )
        after_split()
        local = open_local_round(work_dir, monkeypatch)
        local.cores, local.tasks = 2, tasks or engine_of(story.local)
        if keeps:
            local.originals = open_keeper(str(root.with_name(KEPT)), "run", NOW_MS, plan)
        try:
            return local.run(plan)
        finally:
            if local.originals is not None:
                local.originals.close()


def config_of(story: Story) -> Config:
    topics = parse_topic_configs(json.dumps(story.topic_configs), story.name)
    return replace(load_config(), topics=topics)


def planned(story: Story, root: Path, now_ms: int = NOW_MS) -> RoundPlan:
    return plan_log_dirs([str(root)], config_of(story), now_ms)


@contextmanager
def _patched(story: Story) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        if story.all_wait:
            monkeypatch.setattr(GroupSwapper, "_next", _once_all_are_finished)
        if story.in_pieces:
            for name, value in (("STRETCH_BYTES", 150), ("TASK_BYTES", 50), ("LOG_COST_BYTES", 1)):
                monkeypatch.setattr(layout, name, value)
        yield monkeypatch


_next = GroupSwapper._next


def _once_all_are_finished(swapper: GroupSwapper, queue: Any) -> Any:
    while len(queue.finished) + queue.swapped.groups < len(queue.plan.groups):
        time.sleep(0.001)
    return _next(swapper, queue)


def write_partition(
    path: Path,
    segments: Mapping[int, Batches],
    aborted: Mapping[int, Sequence[tuple[int, int, int, int]]] | None = None,
    first_segment: Batches = (),
) -> Path:
    """A partition directory, as a broker leaves it. first_segment: what its .log holds in truth."""
    path.mkdir(parents=True)
    for base_offset, batches in segments.items():
        write_segment(path, base_offset, batches, INTERVAL_BYTES)
        (path / file_name(base_offset, SNAPSHOT)).unlink()
    for base_offset, entries in (aborted or {}).items():
        name = file_name(base_offset, TXN_INDEX)
        (path / name).write_bytes(b"".join(index_entry(*entry) for entry in entries))
    if first_segment:
        log = path / file_name(0, LOG)
        mtime_ns = log.stat().st_mtime_ns
        raws = [raw if isinstance(raw, bytes) else encode(raw) for raw in first_segment]
        log.write_bytes(b"".join(raws))
        os.utime(log, ns=(mtime_ns, mtime_ns))
    listing = list_partition(str(path), path.name[:-2], 0)
    end_offset = log_end_offset(listing)
    for offset in (*list(segments)[1:], end_offset):
        below = tuple(s for s in listing.segments if s.base_offset < offset)
        loaded = listing._replace(segments=below, snapshot_offsets=())
        state = load_producer_state(loaded, 0, offset, ExpiryClock(NOW_MS), clean_shutdown=False)
        producers = [entry for _, entry in sorted(state.entries.items())]
        producer_snapshot.write(str(path / file_name(offset, SNAPSHOT)), producers)
    (path / LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 0\n")
    partition_metadata.write(str(path / PARTITION_METADATA), PartitionMetadata(0, TOPIC_ID))
    return path


def write_checkpoints(root: Path) -> None:
    """Checkpoints as after a clean stop of a broker."""
    ends = {}
    for path in root.iterdir():
        topic = path.name[:-2]
        ends[topic, 0] = log_end_offset(list_partition(str(path), topic, 0))
    checkpoint.write(str(root / checkpoint.RECOVERY_POINT), ends)
    checkpoint.write(str(root / checkpoint.REPLICATION), ends)
    checkpoint.write(str(root / checkpoint.LOG_START), {})
    clean_shutdown.write(str(root))
