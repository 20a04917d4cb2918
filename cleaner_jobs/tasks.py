"""What a task does, whoever runs it: load its values, work through them, give back rows.

A task may run twice, at once, in two places: it writes only under names with its attempt in them,
and what it left counts only when the driver has its rows.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from cleaner_jobs.heartbeat import Heartbeat
from cleaner_jobs.map_capacity import find_map_end
from cleaner_jobs.piece import PieceContext, rewrite_piece
from cleaner_jobs.problems import problem_of
from cleaner_jobs.resolve import PartFiles, VerdictFiles, resolve_partition
from cleaner_jobs.scan import scan_stretches
from cleaner_jobs.sync_pool import SyncPool
from cleaner_jobs.task_values import (
    MAP_END,
    PART,
    PROBLEM,
    REWRITTEN,
    VERDICT,
    Part,
    RoundSettings,
    Row,
    load_task,
    log_rules_from,
    part_from,
    piece_from,
    stretch_from,
    task_file,
)
from cleaner_jobs.unchanged import LogChangedError
from cleaner_jobs.worker_buffers import WORKER_BUFFERS
from storage.errors import CorruptFileError


def run_task(work_dir: str, stage: str, number: int, attempt: str) -> Iterator[Row]:
    """Do task `number` of a stage; attempt is unique among all tries of all tasks of the run."""
    with Heartbeat(work_dir, stage, number, attempt) as heartbeat:
        # only now: a driver that gives up takes the tasks away, then waits for every heart
        task = load_task(task_file(work_dir, stage, number))
        settings = RoundSettings(*task["settings"])
        for kind, value in _STAGES[stage](task, settings, attempt, heartbeat):
            yield kind, json.dumps(value)


def _scan(
    task: dict[str, Any], settings: RoundSettings, attempt: str, heartbeat: Heartbeat
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    path = os.path.join(settings.work_dir, "parts", f"{attempt}.parts")
    stretches = [stretch_from(values) for values in task["stretches"]]
    for found in scan_stretches(stretches, settings, path, WORKER_BUFFERS):
        if isinstance(found, Part):
            heartbeat.advance(found.log_bytes)
            yield PART, found
        else:
            yield PROBLEM, problem_of(*found)


def _fill_map(
    task: dict[str, Any], settings: RoundSettings, attempt: str, heartbeat: Heartbeat
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    del attempt  # nothing is written
    for values in task["logs"]:
        stretches = [stretch_from(stretch) for stretch in values]
        try:
            yield MAP_END, find_map_end(stretches, task["capacity"], settings, WORKER_BUFFERS)
        except (CorruptFileError, LogChangedError, OSError) as error:
            yield PROBLEM, problem_of(stretches[0].log_id, error)
        heartbeat.advance(sum(stretch.end - stretch.start for stretch in stretches))


def _resolve(
    task: dict[str, Any], settings: RoundSettings, attempt: str, heartbeat: Heartbeat
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    path = os.path.join(settings.work_dir, "verdicts", f"{attempt}.verdicts")
    logs = {log_id: [part_from(part) for part in parts] for log_id, parts in task["logs"]}
    with PartFiles() as files, open(path, "wb", buffering=0) as out:
        for log_id, partition in task["partitions"]:
            parts = logs[log_id]
            try:
                verdict = resolve_partition(parts, partition, files, (out, path), WORKER_BUFFERS)
                yield VERDICT, verdict
            except (CorruptFileError, OSError) as error:
                yield PROBLEM, problem_of(log_id, error)
            heartbeat.advance(sum(p.log_bytes for p in parts) >> parts[0].partition_bits)


def _rewrite(
    task: dict[str, Any], settings: RoundSettings, attempt: str, heartbeat: Heartbeat
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    logs = {rules[0]: log_rules_from(rules) for rules in task["logs"]}
    failed: set[int] = set()
    with PartFiles() as part_files, VerdictFiles() as verdict_files, SyncPool() as syncs:
        context = PieceContext(settings, attempt, part_files, verdict_files, WORKER_BUFFERS, syncs)
        for values in task["pieces"]:
            piece = piece_from(values)
            if piece.log_id in failed:
                continue
            try:
                yield REWRITTEN, rewrite_piece(piece, logs[piece.log_id], context)
            except (CorruptFileError, LogChangedError, OSError) as error:
                failed.add(piece.log_id)
                yield PROBLEM, problem_of(piece.log_id, error)
            heartbeat.advance(sum(part.log_bytes for part in piece.parts))
        for log_id, failure in syncs.failures().items():
            yield PROBLEM, problem_of(log_id, failure)


_STAGES: dict[str, Callable[..., Iterator[tuple[str, tuple[Any, ...]]]]] = {
    "scan": _scan,
    "rescan": _scan,
    "fill-map": _fill_map,
    "partial-scan": _scan,
    "resolve": _resolve,
    "resolve-again": _resolve,
    "rewrite": _rewrite,
}
