"""Log directories of a few small segments, for tests of what a plan makes of them.

A log of n segments has two records of 79 bytes together in each, with offsets 0-1, 2-3, …, and with
timestamps 1000, 2000, … ms, one for each segment; the last segment is active.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compactor.inspection.explain import Explanation, explain, only_topic_of
from compactor.planning.candidate import RoundClock
from compactor.planning.evaluation import EvaluationRequest
from compactor.planning.round_plan import RoundPlan, plan_round
from compactor.settings.config import Config, load_config
from storage.file_names import SNAPSHOT, file_name
from storage.formats import checkpoint, producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from tests.support.log_builder import Batch, BuiltLog, Message, Producer, build_log_dir

BATCH_BYTES = 79
NOW_MS = 1_000_000
COMPACT = load_config(settings={"cleanup.policy": "compact"})


class Shape(NamedTuple):
    topic: str = "t"
    partition: int = 0
    segments: int = 3
    producer_id: int | None = None


def build(root: Path, *shapes: Shape) -> str:
    """A log directory of a broker that was shut down cleanly."""
    build_log_dir(root, *map(_log, shapes or (Shape(),)))
    return str(root)


def _log(shape: Shape) -> BuiltLog:
    segments = tuple((_batch(shape, number),) for number in range(shape.segments))
    return BuiltLog(shape.topic, shape.partition, segments)


def _batch(shape: Shape, number: int) -> Batch:
    time_ms = 1000 * (number + 1)
    messages = Message(b"a", b"1", time_ms), Message(b"b", b"1", time_ms)
    if shape.producer_id is None:
        return Batch(messages)
    return Batch(messages, producer=Producer(shape.producer_id, 0, 2 * number))


def clean_up_to(root: Path, *entries: tuple[str, int, int]) -> None:
    """Write the cleaner checkpoint."""
    offsets = {(topic, partition): offset for topic, partition, offset in entries}
    checkpoint.write(str(root / checkpoint.CLEANER_OFFSET), offsets)


def open_transaction(partition: Path, producer_id: int, first_offset: int, end_offset: int) -> None:
    """Let the snapshot at the end of the log say that a transaction is open."""
    entry = ProducerEntry(producer_id, 0, 1, end_offset - 1, 1, NOW_MS, None, first_offset)
    producer_snapshot.write(str(partition / file_name(end_offset, SNAPSHOT)), [entry])


def with_settings(settings: dict[str, str]) -> Config:
    """Every topic compacted, with these settings."""
    return load_config(settings={"cleanup.policy": "compact"} | settings)


def plan_log_dirs(
    log_dirs: Iterable[str],
    config: Config,
    as_of_ms: int,
    problems: Mapping[str, str] | None = None,
    machine_ms: int | None = None,
) -> RoundPlan:
    """Plan a round over log directories of this machine, as of a time.

    problems: by path of the partition directory, why a log is known to be unfit.
    machine_ms: what the machine's clock says by now, where as_of_ms is what it said before.
    """
    clock = RoundClock.of(config, as_of_ms, machine_ms)
    return plan_round(
        EvaluationRequest(
            log_dirs=tuple(log_dirs), config=config, clock=clock, problems=problems or {}
        )
    )


def explained(log_dirs: Sequence[str], topic_partition: str, config: Config) -> Explanation:
    """As of NOW_MS."""
    config = only_topic_of(topic_partition, config)
    return explain(plan_log_dirs(log_dirs, config, NOW_MS), topic_partition, config)
