"""Runs one task of a stage: loads its values, works through them, and returns rows.

A task may run twice, at once, in two places. It writes only under names with its attempt in them,
and what it left counts only when the driver has its rows.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

from cleaner_jobs.inspection_counters import CountedRun
from cleaner_jobs.messages import (
    FILL_MAP,
    INSPECT,
    MAP,
    MAP_END,
    MERGE,
    PART,
    PARTIAL_SCAN,
    PROBLEM,
    RESCAN,
    RESOLVE,
    RESOLVE_AGAIN,
    REWRITE,
    REWRITTEN,
    SCAN,
    VERDICT,
    LogRules,
    Part,
    Piece,
    Rewritten,
    RoundSettings,
    Row,
    Stretch,
    io_limit_file,
    load_task,
    task_file,
    value_of,
)
from cleaner_jobs.niceness import be_nice
from cleaner_jobs.problems import problem_of
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.tasks.executor_paths import SAME_PATHS, PathMapping
from cleaner_jobs.tasks.heartbeat import Heartbeat
from cleaner_jobs.tasks.inspection import Choices, count_hash_partition, count_stretches
from cleaner_jobs.tasks.map_capacity import find_map_end
from cleaner_jobs.tasks.mapping import MapContext, map_value
from cleaner_jobs.tasks.partial_results import PartialResults, PartialResultsFile
from cleaner_jobs.tasks.resolve import resolve_hash_partition
from cleaner_jobs.tasks.rewrite_task import PieceContext, rewrite_piece
from cleaner_jobs.tasks.scan import scan_stretches
from cleaner_jobs.work_file import WorkFiles
from storage.errors import CorruptFileError
from storage.files.descriptors import naming
from storage.files.files import Disk, Files
from storage.files.io_limit import limited
from storage.files.local import LOCAL
from storage.formats.batch_windows import Buffers

WORKER_BUFFERS = Buffers()  # one for each worker process; its tasks come one after another


def run_task(
    work_dir: str,
    stage: str,
    number: int,
    attempt: str,
    paths: PathMapping = SAME_PATHS,
    disk: Disk = LOCAL,
) -> Iterator[Row]:
    """Do task `number` of a stage; attempt is unique among all tries of all tasks of the run.

    work_dir: as it is named here.
    """
    with Heartbeat(work_dir, stage, number, attempt, disk) as heartbeat:
        # only now: a driver that gives up takes the tasks away, then waits for every heart
        task = paths.to_executor(load_task(task_file(work_dir, stage, number), disk))
        settings = value_of(RoundSettings, task["settings"])
        tried = _Try(
            settings=settings,
            number=number,
            attempt=attempt,
            heartbeat=heartbeat,
            paths=paths,
            disk=disk,
        )
        if settings.nice is not None:
            be_nice(settings.nice)
        with limited(settings.io_limit, io_limit_file(work_dir), disk):
            for kind, value in _STAGES[stage](task, tried):
                yield kind, json.dumps(paths.to_driver(value))


class _Try(NamedTuple):
    """One try of one task of a stage."""

    settings: RoundSettings
    number: int  # of the task
    attempt: str
    heartbeat: Heartbeat
    paths: PathMapping
    disk: Disk


def _scan(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    path = os.path.join(tried.settings.work_dir, "parts", f"{tried.attempt}.parts")
    stretches = [value_of(Stretch, values) for values in task["stretches"]]
    for found in scan_stretches(stretches, tried.settings, path, WORKER_BUFFERS, tried.disk):
        if isinstance(found, Part):
            tried.heartbeat.advance(found.log_bytes)
            yield PART, found
        else:
            yield PROBLEM, problem_of(*found)


def _fill_map(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for values in task["logs"]:
        stretches = [value_of(Stretch, stretch) for stretch in values]
        try:
            yield (
                MAP_END,
                find_map_end(
                    stretches, task["capacity"], tried.settings, WORKER_BUFFERS, tried.disk
                ),
            )
        except (CorruptFileError, LogChangedError, OSError) as error:
            yield PROBLEM, problem_of(stretches[0].log_id, error)
        tried.heartbeat.advance(sum(stretch.end - stretch.start for stretch in stretches))


def _resolve(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    path = os.path.join(tried.settings.work_dir, "verdicts", f"{tried.attempt}.verdicts")
    logs = {log_id: [value_of(Part, part) for part in parts] for log_id, parts in task["logs"]}
    with WorkFiles(tried.disk) as files, naming(path), tried.disk.open_raw(path, "wb") as out:
        for log_id, hash_partition in task["hash_partitions"]:
            parts = logs[log_id]
            try:
                verdict = resolve_hash_partition(
                    parts, hash_partition, files, (out, path), WORKER_BUFFERS
                )
                yield VERDICT, verdict
            except (CorruptFileError, OSError) as error:
                yield PROBLEM, problem_of(log_id, error)
            tried.heartbeat.advance(sum(p.log_bytes for p in parts) >> parts[0].hash_partition_bits)


def _inspect(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    path = os.path.join(tried.settings.work_dir, "parts", f"{tried.attempt}.counted")
    stretches = [value_of(Stretch, values) for values in task["stretches"]]
    for found in count_stretches(
        stretches,
        tried.settings,
        path,
        WORKER_BUFFERS,
        value_of(Choices, task["choices"]),
        tried.disk,
    ):
        if isinstance(found, CountedRun):
            tried.heartbeat.advance(found.log_bytes)
            yield INSPECT, found
        else:
            yield PROBLEM, problem_of(*found)


def _merge(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    path = os.path.join(tried.settings.work_dir, "verdicts", f"{tried.attempt}.keys")
    logs = {log_id: [value_of(CountedRun, run) for run in runs] for log_id, runs in task["logs"]}
    with WorkFiles(tried.disk) as files:
        for log_id, hash_partition in task["hash_partitions"]:
            runs = logs[log_id]
            try:
                yield MERGE, count_hash_partition(runs, hash_partition, files, path, WORKER_BUFFERS)
            except (CorruptFileError, OSError) as error:
                yield PROBLEM, problem_of(log_id, error)
            tried.heartbeat.advance(sum(r.log_bytes for r in runs) >> runs[0].hash_partition_bits)


def _map(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    context = MapContext(tried.settings.work_dir, tried.disk)
    for number, units, value in task["logs"]:
        yield map_value(task["function"], number, value, context)
        tried.heartbeat.advance(units)


def _rewrite(task: dict[str, Any], tried: _Try) -> Iterator[tuple[str, tuple[Any, ...]]]:
    settings, disk = tried.settings, tried.disk
    logs = {rules.log_id: rules for rules in (value_of(LogRules, log) for log in task["logs"])}
    early_pieces = _EarlyPieces(settings.work_dir, tried)
    failed: set[int] = set()
    with (
        _held(disk, logs.values()),
        WorkFiles(disk) as files,
        PartialResultsFile(
            settings.work_dir, REWRITE, tried.number, tried.attempt, disk
        ) as partial_results,
        SyncPool(disk) as syncs,
    ):
        context = PieceContext(
            settings=settings,
            attempt=tried.attempt,
            files=files,
            buffers=WORKER_BUFFERS,
        )
        for values in task["pieces"]:
            piece = value_of(Piece, values)
            if piece.log_id in failed:
                continue
            result = early_pieces.of(piece)
            if result is None:
                log = logs[piece.log_id]
                try:
                    with disk.kept_open(log.path):
                        result = rewrite_piece(piece, log, context)
                    row = REWRITTEN, json.dumps(tried.paths.to_driver(result))
                    syncs.start(
                        piece.log_id, result.staged_files, partial(partial_results.add, row)
                    )
                except (CorruptFileError, LogChangedError, OSError) as error:
                    # another try may be ahead: then the driver has perhaps swapped the group in
                    result = early_pieces.of(piece, look_again=True)
                    if result is None:
                        failed.add(piece.log_id)
                        yield PROBLEM, problem_of(piece.log_id, error)
                        continue
            yield REWRITTEN, result
            tried.heartbeat.advance(sum(part.log_bytes for part in piece.parts))
        for log_id, failure in syncs.failures().items():
            yield PROBLEM, problem_of(log_id, failure)


@contextmanager
def _held(disk: Disk, logs: Iterable[LogRules]) -> Iterator[None]:
    """Stage files in the very directories that the round was planned for."""
    with ExitStack() as held:
        for log in logs:
            held.enter_context(disk.hold_directory(log.path, log.directory_inode))
        yield


class _EarlyPieces:
    """The pieces that other tries of a rewrite task have finished, by their partial results."""

    def __init__(self, work_dir: str, tried: _Try) -> None:
        self._rows = PartialResults(work_dir, REWRITE, tried.number, tried.disk)
        self._paths = tried.paths
        self._pieces: dict[tuple[int, int, int], Rewritten] = {}
        self._look()

    def _look(self) -> None:
        for _, value in self._rows.new():
            result = value_of(Rewritten, self._paths.to_executor(json.loads(value)))
            self._pieces.setdefault((result.log_id, result.group, result.number), result)

    def of(self, piece: Piece, look_again: bool = False) -> Rewritten | None:
        if look_again:
            self._look()
        return self._pieces.get((piece.log_id, piece.group, piece.number))


_STAGES: dict[str, Callable[..., Iterator[tuple[str, tuple[Any, ...]]]]] = {
    SCAN: _scan,
    RESCAN: _scan,
    FILL_MAP: _fill_map,
    PARTIAL_SCAN: _scan,
    RESOLVE: _resolve,
    RESOLVE_AGAIN: _resolve,
    REWRITE: _rewrite,
    INSPECT: _inspect,
    MERGE: _merge,
    MAP: _map,
}


THREADS = 8


class SyncPool:
    """Syncs files in threads; nothing is durable before `failures` has returned."""

    def __init__(self, files: Files = LOCAL) -> None:
        self._files = files
        self._threads = ThreadPoolExecutor(THREADS)
        self._started: list[tuple[int, Future[None]]] = []

    def __enter__(self) -> "SyncPool":
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def start(
        self, log_id: int, paths: Iterable[str], when_durable: Callable[[], None] | None = None
    ) -> None:
        """Begin to sync files of a log that are completely written and closed.

        when_durable: what is to be done as soon as all of them are on disk.
        """
        self._started.append((log_id, self._threads.submit(self._sync, tuple(paths), when_durable)))

    def failures(self) -> dict[int, OSError]:
        """Wait for all that was started; return, by log, what could not be brought to disk."""
        failed: dict[int, OSError] = {}
        for log_id, future in self._started:
            error = future.exception()
            if isinstance(error, OSError):
                failed.setdefault(log_id, error)
            elif error is not None:
                raise error
        self._started.clear()
        return failed

    def _sync(self, paths: Iterable[str], when_durable: Callable[[], None] | None) -> None:
        """Sync files in order; after a failure the rest stay unsynced: their log is set aside."""
        for path in paths:
            self._files.sync_file(path)
        if when_durable is not None:
            when_durable()
