"""An inspection: one pass over logs, in two stages of tasks, and what comes of it.

The first stage counts batches and records, and leaves the keys of about a million records at a time
by hash partition; the second counts the keys of each hash partition. So no task holds more than its
share of the keys, and the driver none at all. Only reads; what is left is gone with the work
directory.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cleaner_jobs.inspection_counters import BY_GROUP, BY_TOPIC, CountedKeys, CountedRun
from cleaner_jobs.messages import (
    INSPECT,
    MERGE,
    LogPlan,
    RoundSettings,
    SegmentGroup,
    Stretch,
    TaskProblem,
    value_of,
)
from cleaner_jobs.problems import problem_of
from compactor.host.progress import ProgressSink
from compactor.inspection.inspected_log import (
    CountedLog,
    InspectedLog,
    Presentation,
    heaviest_parts,
    inspected,
)
from compactor.inspection.inspection import LogInspection
from compactor.jobs.engine_choice import EngineOptions, bytes_to_read
from compactor.jobs.engines import Engine, StageRunner, open_engine_to_read
from compactor.jobs.log_indexes import index_positions, read_indexes, save_expected
from compactor.planning import layout
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.files.files import Disk
from storage.files.local import LOCAL
from storage.formats.coordinator_records import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    decode_key,
    decode_value,
)
from storage.formats.legacy_messages import decode_records
from storage.log import segment_reader
from storage.log.log_dir import PartitionListing

EVERY_BYTE = 2**63 - 1
MOST_BYTES = 256 << 20  # read of each log, the newest segments first


class InspectSettings(NamedTuple):
    """How an inspection is run."""

    now_ms: int
    engine: EngineOptions
    work_dir: str | None = None
    sample_bytes: int = EVERY_BYTE  # of each log, at most, but for one stretch
    heavy_keys: int = 10
    state_logs: tuple[PartitionListing, ...] = ()  # of __transaction_state
    disk: Disk = LOCAL  # of the work directory


def inspect_logs(
    logs: Sequence[InspectedLog], settings: InspectSettings, progress: ProgressSink
) -> list[LogInspection]:
    """Inspect logs that have a segment; in the same order."""
    parts = _parts_of(logs)
    counted = [*logs, *(logs[number] for number, _ in parts)]
    plans = [_plan_of(log_id, log) for log_id, log in enumerate(counted)]
    if not plans:
        return []
    with open_engine_to_read(settings, plans, bytes_to_read(plans), progress) as (engine, facts):
        by_part = enumerate((part for _, part in parts), len(logs))
        choices = _growing(logs), list(by_part)
        stages = _Stages(engine, facts, plans, choices, progress, settings.disk)
        found = stages.run(settings.sample_bytes)
    shown = Presentation(settings.now_ms, settings.heavy_keys)
    told = [inspected(log, found.of(log_id), shown) for log_id, log in enumerate(logs)]
    for log_id, (number, part) in enumerate(parts, len(logs)):
        heavy = heaviest_parts(logs[number], found.of(log_id), part, shown)
        log = told[number]
        if part == BY_GROUP:
            told[number] = replace(log, heavy_groups=heavy)
        else:
            told[number] = replace(log, heavy_topics=heavy)
    return _with_transactional_ids(told, settings.state_logs)


def _parts_of(logs: Sequence[InspectedLog]) -> list[tuple[int, int]]:
    """The logs, by number, that are also counted by parts of their keys, and by which."""
    return [
        (number, part)
        for number, log in enumerate(logs)
        if log.listing.topic == CONSUMER_OFFSETS
        for part in (BY_GROUP, BY_TOPIC)
    ]


def _with_transactional_ids(
    logs: Sequence[LogInspection], state_logs: Sequence[PartitionListing]
) -> list[LogInspection]:
    wanted = {txn.producer_id for log in logs for txn in log.open_transactions}
    ids = transactional_ids(state_logs, wanted) if wanted else {}
    return [
        replace(
            log,
            open_transactions=tuple(
                txn._replace(transactional_id=ids.get(txn.producer_id))
                for txn in log.open_transactions
            ),
        )
        for log in logs
    ]


class _CountedLogs(NamedTuple):
    runs: Mapping[int, Sequence[CountedRun]]  # by log id, in the order of the log
    keys: Mapping[int, Sequence[CountedKeys]]
    problems: Mapping[int, TaskProblem]

    def of(self, log_id: int) -> CountedLog:
        problem = self.problems.get(log_id)
        return CountedLog(self.runs.get(log_id, ()), self.keys.get(log_id, ()), problem)


class _Stages:
    """Runs the two stages; a log with a problem takes no part in the second."""

    def __init__(
        self,
        engine: Engine,
        facts: RoundSettings,
        plans: Sequence[LogPlan],
        choices: tuple[Sequence[str], Sequence[tuple[int, int]]],
        progress: ProgressSink,
        disk: Disk,
    ) -> None:
        self._choices, self._disk = choices, disk
        self._facts, self._plans, self._cores = facts, plans, engine.core_count()
        self._runner = StageRunner(engine, facts, progress, disk)
        self._problems: dict[int, TaskProblem] = {}

    def run(self, sample_bytes: int) -> _CountedLogs:
        log_bytes = sum(min(plan.log_bytes, sample_bytes) for plan in self._plans)
        length = layout.stretch_bytes(log_bytes, self._cores)
        stretches: list[Stretch] = []
        for plan in self._plans:
            try:
                stretches += _sampled(self._stretches(plan, length, sample_bytes), sample_bytes)
            except (CorruptFileError, OSError) as error:
                self._problems[plan.log_id] = problem_of(plan.log_id, error)
        read_bytes = sum(stretch.end - stretch.start for stretch in stretches)
        dealt = layout.scan_tasks(stretches, self._cores)
        tasks = [{"stretches": own, "choices": self._choices} for own in dealt]
        runs: dict[int, list[CountedRun]] = defaultdict(list)
        for values in self._stage(INSPECT, tasks, read_bytes):
            run = value_of(CountedRun, values)
            runs[run.log_id].append(run)
        for of_log in runs.values():
            of_log.sort(key=lambda run: run.first_record_offset)
        sound = {log_id: of for log_id, of in runs.items() if log_id not in self._problems}
        keys: dict[int, list[CountedKeys]] = defaultdict(list)
        for values in self._stage(MERGE, self._merge_tasks(sound), read_bytes):
            found = value_of(CountedKeys, values)
            keys[found.log_id].append(found)
        return _CountedLogs(runs, keys, self._problems)

    def _stretches(self, plan: LogPlan, length: int, sample_bytes: int) -> list[Stretch]:
        indexes = read_indexes(plan, self._disk)
        aborted = save_expected(plan, indexes, self._facts.work_dir, self._disk)
        if plan.log_bytes > sample_bytes:
            length = layout.SHORTEST_STRETCH_BYTES
        return layout.stretches_of(
            plan, partial(index_positions, files=self._disk), aborted, length
        )

    def _merge_tasks(self, runs: Mapping[int, Sequence[CountedRun]]) -> list[dict[str, Any]]:
        tasks = []
        for pairs in layout.resolve_tasks(list(runs.values()), self._cores):
            own = [(log_id, runs[log_id]) for log_id in dict.fromkeys(pair[0] for pair in pairs)]
            tasks.append({"logs": own, "hash_partitions": pairs})
        return tasks

    def _stage(
        self, stage: str, tasks: list[dict[str, Any]], log_bytes: int
    ) -> Iterable[list[Any]]:
        values, problems = self._runner.run(stage, tasks, log_bytes)
        for problem in problems:
            self._problems.setdefault(problem.log_id, problem)
        return values


def _growing(logs: Sequence[InspectedLog]) -> list[str]:
    """The active segments of a broker that may be running: what it appends is not looked at."""
    return [
        os.path.join(log.listing.path, file_name(log.listing.segments[-1].base_offset, LOG))
        for log in logs
        if not log.has_clean_shutdown
    ]


def _sampled(stretches: Sequence[Stretch], sample_bytes: int) -> Sequence[Stretch]:
    """All, or as many as a sample takes, spread evenly over the log."""
    total = sum(stretch.end - stretch.start for stretch in stretches)
    if total <= sample_bytes:
        return stretches
    wanted = max(1, len(stretches) * sample_bytes // total)
    chosen = np.linspace(0, len(stretches) - 1, wanted).round().astype(int)
    return [stretches[number] for number in sorted(set(chosen.tolist()))]


def _plan_of(log_id: int, log: InspectedLog) -> LogPlan:
    """All segments of a log, as if they were to be cleaned."""
    listing = log.listing
    return LogPlan(
        log_id=log_id,
        log_dir=log.log_dir,
        topic=listing.topic,
        partition=listing.partition,
        path=listing.path,
        first_dirty_offset=log.first_dirty_offset,
        first_uncleanable_offset=log.first_uncleanable_offset,
        groups=(SegmentGroup(listing.segments),),
        delete_retention_ms=log.config.delete_retention_ms,
        index_interval_bytes=log.config.index_interval_bytes,
        segment_index_bytes=log.config.segment_index_bytes,
        active_producers=(),
        log_start_offset=log.log_start_offset,
        txn_index_base_offsets=tuple(
            segment.base_offset for segment in listing.segments if segment.txn_index_bytes
        ),
    )


def transactional_ids(logs: Sequence[PartitionListing], wanted: Collection[int]) -> dict[int, str]:
    """Return the transactional ids of producer ids.

    logs: partitions of `__transaction_state`; others are skipped, and so is what cannot be read,
    since nothing depends on it.
    """
    found: dict[int, str] = {}
    for log in logs:
        left = MOST_BYTES
        for segment in reversed(log.segments if log.topic == TRANSACTION_STATE else ()):
            left -= segment.log_bytes
            if left < 0 or len(found) == len(wanted):
                break
            path = os.path.join(log.path, file_name(segment.base_offset, LOG))
            try:
                of_segment = dict(_producers_in(path, log))
            except (CorruptFileError, OSError):
                continue
            found = {p: of_segment[p] for p in of_segment if p in wanted} | found
    return found


def _producers_in(path: str, log: PartitionListing) -> Iterator[tuple[int, str]]:
    for position, header, batch in segment_reader.read_batches(path, files=log.access):
        for record in decode_records(batch, header, path, position):
            if header.is_control or record.key is None or record.value is None:
                continue
            key = decode_key(TRANSACTION_STATE, record.key)
            value = decode_value(TRANSACTION_STATE, record.key, record.value)
            if key.fields is not None and value.fields is not None:
                yield value.fields["producerId"], key.fields["transactionalId"]
