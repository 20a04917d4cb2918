"""The three Spark stages of a round, from log plans to rewritten pieces, and what failed where."""

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.problems import problem_of
from cleaner_jobs.task_values import (
    PROBLEM,
    REWRITE,
    LogRules,
    MapEnd,
    Part,
    Piece,
    Rewritten,
    RoundSettings,
    Row,
    TaskProblem,
    Verdict,
    part_from,
)
from cleaner_jobs.tasks.heartbeat import done_bytes
from compactor.cleaning import transaction_files, transactions
from compactor.cleaning.transactions import Decisions, TxnIndexOfSegment
from compactor.cleaning.txn_index_check import check_indexes
from compactor.host.progress import ProgressSink
from compactor.planning import layout
from compactor.planning.planner import with_map_end
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG
from storage.files import filesystem, held_directories
from storage.formats import offset_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.25
BUSY_SWITCH_SECONDS = 0.0001


@dataclass(slots=True)
class LogOutcome:
    """What the stages made of one log."""

    plan: LogPlan
    parts: list[Part] = field(default_factory=list)  # in the order of the log
    verdicts: list[Verdict] = field(default_factory=list)
    pieces: list[Rewritten] = field(default_factory=list)
    problem: TaskProblem | None = None
    sparse_indexes: int = 0  # destinations whose indexes were made to fit when they were joined
    cut_segments: int = 0  # destinations beyond the one that a group has in Kafka
    txn_indexes: list[TxnIndexOfSegment] = field(default_factory=list)
    aborted_file: str = ""  # what the last scan was told of aborted transactions
    unlisted_aborts: int = 0  # transactions that are taken for committed, as by Kafka
    decisions: Decisions | None = None  # None: no transactional or control batch
    discardable_file: str = ""
    txn_index_files: dict[int, str] = field(default_factory=dict)  # by group
    swapped_groups: int = 0  # those from the first on that are as they are to be
    swap_broke_off: bool = False  # of the group behind them: recovery goes on with it

    def set_aside(self, kind: str, problem: str) -> None:
        self.problem = TaskProblem(self.plan.log_id, kind, self.plan.path, -1, problem)


class FinishedGroup(NamedTuple):
    """A segment group all of whose pieces are rewritten."""

    group: int
    parts: Sequence[Part]
    pieces: Sequence[Rewritten]  # by number


class _Awaited:
    """What has come of the pieces of a group."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.numbers: set[int] = set()  # of pieces that have not come yet
        self.pieces: list[Rewritten] = []


class Stages:
    """Runs the stages of one round; a log with a problem takes no part in the next one."""

    def __init__(
        self,
        spark: "SparkSession",
        settings: RoundSettings,
        plans: Sequence[LogPlan],
        progress: ProgressSink,
    ) -> None:
        from cleaner_jobs.spark.task_job import core_count

        self._spark, self._settings, self._progress = spark, settings, progress
        self._cores = core_count(spark)
        self.outcomes = {plan.log_id: LogOutcome(plan) for plan in plans}

    def sound(self) -> list[LogOutcome]:
        """The logs without a problem so far, in the order of the round."""
        return [outcome for outcome in self.outcomes.values() if outcome.problem is None]

    def scan(self) -> None:
        """Scan all logs, by what their transaction indexes say is aborted."""
        aborted_files = {}
        for outcome in self.sound():
            with self.or_set_aside(outcome):
                _check_empty_segments(outcome.plan)
                outcome.txn_indexes = transaction_files.read_indexes(outcome.plan)
                aborted_files[outcome.plan.log_id] = transaction_files.save_expected(
                    outcome.plan, outcome.txn_indexes, self._settings.work_dir
                )
        self._scan("scan", aborted_files)

    def limit_maps(self, capacity: int) -> None:
        """Shorten the round of logs whose map would be full, and scan those again."""
        for log_id, aborted_file in self._decide(self.sound()).items():
            self.outcomes[log_id].aborted_file = aborted_file
        logs = []
        for outcome in self.sound():
            with self.or_set_aside(outcome):
                start = transaction_files.map_start(outcome.plan)
                logs.append(layout.dirty_stretches(outcome.plan, start, outcome.aborted_file))
        tasks = layout.deal_by_cost(
            logs, [sum(s.end - s.start for s in of_log) for of_log in logs], self._cores
        )
        ends = self._run("fill-map", [{"logs": own, "capacity": capacity} for own in tasks])
        again = {}
        for values in ends:
            end = MapEnd(*values)
            outcome = self.outcomes[end.log_id]
            if end.offset < outcome.plan.first_uncleanable_offset:
                outcome.plan = with_map_end(outcome.plan, end.offset)
                again[end.log_id] = outcome.aborted_file
        if again:
            self._scan("partial-scan", again)

    def _decide(self, outcomes: Sequence[LogOutcome]) -> dict[int, str]:
        """Decide about the transactions of logs.

        Returns the logs whose scan went by what turned out to be wrong, each with the file that
        says it right.
        """
        work_dir, again = self._settings.work_dir, {}
        for outcome in outcomes:
            outcome.decisions, outcome.discardable_file = None, ""
            outcome.txn_index_files = {}
            if not any(part.txn_batches for part in outcome.parts):
                continue
            plan = outcome.plan
            with self.or_set_aside(outcome):
                found = transaction_files.log_transactions(plan, outcome.parts, outcome.txn_indexes)
                outcome.unlisted_aborts = check_indexes(
                    found, plan.path, partial(transaction_files.later_markers, plan)
                )
                decisions = transactions.decide(found)
                outcome.decisions = decisions
                outcome.discardable_file, outcome.txn_index_files = (
                    transaction_files.save_decisions(plan, decisions, work_dir)
                )
                if not decisions.agrees:
                    again[plan.log_id] = transaction_files.save_exact(plan, decisions, work_dir)
        return again

    @contextmanager
    def or_set_aside(self, outcome: LogOutcome) -> Iterator[None]:
        try:
            yield
        except (CorruptFileError, OSError) as error:
            outcome.problem = problem_of(outcome.plan.log_id, error)

    def _scan(self, stage: str, aborted_files: dict[int, str]) -> None:
        """Scan the logs that aborted_files names, each by what its file says is aborted."""
        stretches = []
        for log_id, aborted_file in aborted_files.items():
            outcome = self.outcomes[log_id]
            outcome.parts.clear()
            outcome.aborted_file = aborted_file
            with self.or_set_aside(outcome):
                stretches += layout.stretches_of(outcome.plan, _index_positions, aborted_file)
        tasks = layout.scan_tasks(stretches, self._cores)
        for values in self._run(stage, [{"stretches": own} for own in tasks]):
            part = part_from(values)
            self.outcomes[part.log_id].parts.append(part)
        for log_id in aborted_files:
            self.outcomes[log_id].parts.sort(key=_place)

    def resolve(self) -> None:
        """Merge the maps, and decide about transactions meanwhile: the driver has nothing to do.

        Logs whose scan turns out to have been wrong are scanned and resolved again.
        """
        with _turns_taken_often(), ThreadPoolExecutor(1) as threads:
            deciding = threads.submit(self._decide, self.sound())
            self._resolve("resolve", self.sound())
            again = deciding.result()
        if again:
            self._scan("rescan", again)
            outcomes = [self.outcomes[log_id] for log_id in again]
            for outcome in outcomes:
                outcome.verdicts.clear()
            self._resolve("resolve-again", [o for o in outcomes if o.problem is None])

    def _resolve(self, stage: str, outcomes: Sequence[LogOutcome]) -> None:
        logs = {o.plan.log_id: o.parts for o in outcomes if o.parts}
        tasks = []
        for pairs in layout.resolve_tasks(list(logs.values()), self._cores):
            needed = dict.fromkeys(log_id for log_id, _ in pairs)
            own = [(log_id, logs[log_id]) for log_id in needed]
            tasks.append({"logs": own, "partitions": pairs})
        for values in self._run(stage, tasks):
            verdict = Verdict(*values)
            self.outcomes[verdict.log_id].verdicts.append(verdict)

    def rewrite(self, take: Callable[[LogOutcome, FinishedGroup], None]) -> None:
        """Rewrite all groups; take is given each one as soon as all of its pieces are there."""
        sound = self.sound()
        total = sum(part.log_bytes for outcome in sound for part in outcome.parts)
        piece_bytes = total // layout.task_count(total, self._cores)
        pieces = [
            _with_transactions(piece, outcome)
            for outcome in sound
            for piece in layout.pieces_of(outcome.plan, outcome.parts, piece_bytes)
        ]
        rules = {outcome.plan.log_id: _rules(outcome) for outcome in sound}
        tasks = []
        for own in layout.rewrite_tasks(pieces, self._cores):
            needed = dict.fromkeys(piece.log_id for piece in own)
            tasks.append({"logs": [rules[log_id] for log_id in needed], "pieces": own})
        awaited: dict[tuple[int, int], _Awaited] = defaultdict(_Awaited)
        for piece in pieces:
            group = awaited[piece.log_id, piece.group]
            group.parts += piece.parts
            group.numbers.add(piece.number)

        def take_piece(values: list[Any]) -> None:
            piece = Rewritten(*values)
            group = awaited[piece.log_id, piece.group]
            if piece.number not in group.numbers:
                return  # told before, perhaps by another try of its task
            group.numbers.remove(piece.number)
            group.pieces.append(piece)
            outcome = self.outcomes[piece.log_id]
            outcome.pieces.append(piece)
            if not group.numbers and outcome.problem is None:
                group.pieces.sort(key=lambda piece: piece.number)
                take(outcome, FinishedGroup(piece.group, group.parts, group.pieces))

        for values in self._run(REWRITE, tasks, take_piece):
            take_piece(values)

    def log_bytes(self) -> int:
        """What the stage that is to come works through."""
        return sum(outcome.plan.log_bytes for outcome in self.sound())

    def _run(
        self,
        stage: str,
        tasks: list[dict[str, Any]],
        take: Callable[[list[Any]], None] | None = None,
    ) -> list[list[Any]]:
        """Run the tasks of a stage, note the problems, and return the other rows' values.

        take: is given the values of rows that are told before the stage is over, too.
        """
        self._progress.stage(stage, self.log_bytes())
        if not tasks:
            return []
        from cleaner_jobs.spark.task_job import run_stage

        tasks = [{"settings": self._settings, **task} for task in tasks]
        work_dir = self._settings.work_dir
        told = (lambda row: take(json.loads(row[1]))) if take else None
        rows = _while_polling(
            lambda: run_stage(self._spark, work_dir, stage, tasks, told),
            lambda: self._progress.advance(done_bytes(work_dir, stage)),
        )
        self._progress.advance(self.log_bytes())
        values = []
        for kind, value in rows:
            decoded = json.loads(value)
            if kind == PROBLEM:
                problem = TaskProblem(*decoded)
                if self.outcomes[problem.log_id].problem is None:
                    self.outcomes[problem.log_id].problem = problem
            else:
                values.append(decoded)
        return values


def _with_transactions(piece: Piece, outcome: LogOutcome) -> Piece:
    if outcome.decisions is None:
        return piece
    return piece._replace(
        txn_index_file=outcome.txn_index_files.get(piece.group, ""),
        changes_markers=piece.group in outcome.decisions.changed_groups,
    )


def _place(part: Part) -> tuple[int, int, int]:
    return part.group, part.sections[0].segment, part.sections[0].start


def _rules(outcome: LogOutcome) -> LogRules:
    plan = outcome.plan
    return LogRules(
        plan.log_id,
        plan.path,
        plan.first_uncleanable_offset,
        plan.delete_retention_ms,
        plan.index_interval_bytes,
        plan.segment_index_bytes,
        plan.active_producers,
        tuple(outcome.verdicts),
        outcome.discardable_file,
        held_directories.inode_of(plan.path),
    )


def _index_positions(log_path: str) -> Sequence[int]:
    """Positions that the offset index knows, none where there is no index."""
    path = log_path.removesuffix(LOG) + INDEX
    if not filesystem.exists(path):
        return ()
    entries = offset_index.read(path)
    offset_index.check(entries, os.path.getsize(log_path), path)
    positions: Sequence[int] = entries["position"].tolist()
    return positions


def _check_empty_segments(plan: LogPlan) -> None:
    """Raise CorruptFileError where an index has entries, but its log, which nobody reads, none."""
    for sources in layout.sources_of(plan):
        for source in sources:
            if not source.log_bytes:
                _index_positions(source.path)


@contextmanager
def _turns_taken_often() -> Iterator[None]:
    """A thread that computes lets others in after a tenth of a millisecond, not five.

    To hand a job to Spark takes some twenty calls to Java, each of which waits for its turn.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(BUSY_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _while_polling(work: Callable[[], list[Row]], poll: Callable[[], None]) -> list[Row]:
    """Do work on this thread while another one polls; an error of Spark's gets a plain message."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            with suppress(OSError):  # a bar that stands still is no reason to stop
                poll()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return work()
    finally:
        done.set()
        watcher.join()
