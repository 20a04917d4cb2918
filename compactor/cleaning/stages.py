"""Run the three stages of a round, scan, resolve and rewrite, and keep what failed for each log.

A log with a problem takes no part in the next stage. The rewrite stage reads record states in the
files of parts and nothing else, so the map's entries in them are released once they are merged
(`release_entries`). A task of the resolve stage that Spark has abandoned may still read them:
it notices that these are not the bytes that were written, and nobody uses what it makes of them.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import Any

from cleaner_jobs.messages import (
    ENTRY_BYTES,
    FILL_MAP,
    PARTIAL_SCAN,
    RESCAN,
    RESOLVE,
    RESOLVE_AGAIN,
    REWRITE,
    SCAN,
    LogPlan,
    LogRules,
    MapEnd,
    Part,
    Piece,
    Rewritten,
    RoundSettings,
    TaskProblem,
    Verdict,
    value_of,
)
from cleaner_jobs.problems import WorkFileError, problem_of
from cleaner_jobs.staging import staged_suffix
from compactor.cleaning.stage_values import (
    NOT_SCANNED,
    WITHOUT_TRANSACTIONS,
    FinishedGroup,
    LogResult,
    Scan,
    TransactionsOfLog,
)
from compactor.host.progress import ProgressSink
from compactor.jobs import log_indexes
from compactor.jobs.engines import Engine, StageRunner, short_switch_interval
from compactor.jobs.log_indexes import TxnIndexOfSegment, index_positions
from compactor.planning import layout
from compactor.planning.segment_groups import with_map_end
from compactor.planning.skipped_logs import problem_report
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.files.disk_hints import punch_hole
from storage.files.files import Disk, Files
from storage.files.local import LOCAL


class _Awaited:
    """What has come of the pieces of a group."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.numbers: set[int] = set()  # of pieces that have not come yet
        self.rewritten: list[Rewritten] = []


class Stages:
    """Runs the stages of one round; a log with a problem takes no part in the next one."""

    def __init__(
        self,
        engine: Engine,
        settings: RoundSettings,
        plans: Sequence[LogPlan],
        progress: ProgressSink,
        disk: Disk = LOCAL,
    ) -> None:
        self._disk = disk
        self._settings, self._progress = settings, progress
        self._runner = StageRunner(engine, settings, progress, disk)
        self._cores = engine.core_count()
        self._plans = {plan.log_id: plan for plan in plans}
        self._log_bytes = {plan.log_id: plan.log_bytes for plan in plans}
        self._problems: dict[int, TaskProblem] = {}  # the first one of each log
        self._txn_indexes: dict[int, list[TxnIndexOfSegment]] = {}
        self._scans: dict[int, Scan] = {}
        self._unproven: list[int] = []  # scanned, and nobody has looked
        self._transactions: dict[int, TransactionsOfLog] = {}
        self._verdicts: dict[int, list[Verdict]] = defaultdict(list)
        self._rewritten: dict[int, list[Rewritten]] = defaultdict(list)

    def sound(self) -> list[LogPlan]:
        """The logs without a problem so far, in the order of the round."""
        return [plan for plan in self._plans.values() if plan.log_id not in self._problems]

    def problems(self) -> list[tuple[LogPlan, TaskProblem]]:
        """The logs that have been stopped, each with what stopped it."""
        return [(self._plans[log_id], problem) for log_id, problem in self._problems.items()]

    def results(self) -> list[LogResult]:
        """What has come of each log, in the order of the round."""
        return [
            LogResult(
                plan=plan,
                problem=self._problems.get(log_id),
                parts=self._scans.get(log_id, NOT_SCANNED).parts,
                verdicts=tuple(self._verdicts[log_id]),
                rewritten=tuple(self._rewritten[log_id]),
                transactions=self._transactions.get(log_id, WITHOUT_TRANSACTIONS),
            )
            for log_id, plan in self._plans.items()
        ]

    def stop(self, log_id: int, problem: TaskProblem) -> None:
        """Leave a log out of what is to come. Of two problems the first one counts."""
        if log_id not in self._problems:
            self._problems[log_id] = problem
            report = problem_report(self._plans[log_id], problem)
            log = f"{report.topic}-{report.partition}"
            self._progress.message(
                f"{log}: {report.status.replace('-', ' ')}: {report.reason}", log
            )

    def is_stopped(self, log_id: int) -> bool:
        """Whether a problem has been met."""
        return log_id in self._problems

    def scanned_since(self) -> list[LogResult]:
        """The sound logs that were scanned since this was last asked."""
        scanned, self._unproven = set(self._unproven), []
        return [
            result
            for result in self.results()
            if result.problem is None and result.plan.log_id in scanned
        ]

    def scan(self) -> None:
        """Scan all logs, by what their transaction indexes say is aborted."""
        aborted_files = {}
        for plan in self.sound():
            with self._or_stop(plan):
                _check_empty_segments(plan, self._disk)
                indexes = log_indexes.read_indexes(plan, self._disk)
                self._txn_indexes[plan.log_id] = indexes
                aborted_files[plan.log_id] = log_indexes.save_expected(
                    plan, indexes, self._settings.work_dir, self._disk
                )
        self._scan(SCAN, aborted_files)

    def limit_maps(self, capacity: int) -> None:
        """Shorten the round of logs whose map would be full, and scan those again."""
        self._take_decided(self._decide(self.sound()))
        logs, aborted_files = [], {}
        for plan in self.sound():
            of_log = self._transactions[plan.log_id]
            aborted_file = of_log.exact_file or self._scans[plan.log_id].aborted_file
            aborted_files[plan.log_id] = aborted_file
            with self._or_stop(plan):
                start = log_indexes.map_start(plan, self._disk)
                logs.append(layout.dirty_stretches(plan, start, aborted_file))
        tasks = layout.deal_by_cost(
            logs, [sum(s.end - s.start for s in of_log) for of_log in logs], self._cores
        )
        ends = self._run(FILL_MAP, [{"logs": own, "capacity": capacity} for own in tasks])
        again = {}
        for values in ends:
            end = value_of(MapEnd, values)
            plan = self._plans[end.log_id]
            if end.offset < plan.first_uncleanable_offset:
                self._plans[end.log_id] = with_map_end(plan, end.offset)
                self._log_bytes[end.log_id] = self._plans[end.log_id].log_bytes
                del self._transactions[end.log_id]  # there are fewer of them now
                again[end.log_id] = aborted_files[end.log_id]
        if again:
            self._scan(PARTIAL_SCAN, again)

    def _decide(self, plans: Sequence[LogPlan]) -> list[tuple[int, TransactionsOfLog | Exception]]:
        """Decide about the transactions of logs, by log id; what kept it from being done."""
        decided: list[tuple[int, TransactionsOfLog | Exception]] = []
        for plan in plans:
            try:
                decided.append((plan.log_id, self._decided(plan)))
            except (CorruptFileError, OSError) as error:
                decided.append((plan.log_id, error))
        return decided

    def _decided(self, plan: LogPlan) -> TransactionsOfLog:
        """Decide for one log. Changes nothing of self, since another thread runs it meanwhile."""
        parts = self._scans[plan.log_id].parts
        if not any(part.txn_batches for part in parts):
            return WITHOUT_TRANSACTIONS
        from compactor.cleaning.transactions import decide_transactions

        indexes = self._txn_indexes[plan.log_id]
        return decide_transactions(plan, parts, indexes, self._settings.work_dir, self._disk)

    def _take_decided(self, decided: Iterable[tuple[int, TransactionsOfLog | Exception]]) -> None:
        for log_id, of_log in decided:
            if isinstance(of_log, Exception):
                self.stop(log_id, problem_of(log_id, of_log))
            else:
                self._transactions[log_id] = of_log

    def _require_own(self, plan: LogPlan, *paths: str) -> None:
        """Raise WorkFileError for a file that no task of this round writes for a log.

        What a task names is changed here, punched or renamed, before it is proved.
        """
        work_dir, marker = self._settings.work_dir, staged_suffix(self._settings.run_id, "")
        for path in filter(None, paths):
            directory, name = os.path.split(path)
            is_staged = directory == plan.path and marker in name
            if not is_staged and os.path.dirname(directory) != work_dir:
                raise WorkFileError(path, 0, "no task of this round writes a file of this name")

    @contextmanager
    def _or_stop(self, plan: LogPlan) -> Iterator[None]:
        try:
            yield
        except (CorruptFileError, OSError) as error:
            self.stop(plan.log_id, problem_of(plan.log_id, error))

    def _scan(self, stage: str, aborted_files: Mapping[int, str]) -> None:
        """Scan the logs that aborted_files names, each by what its file says is aborted."""
        stretches = []
        log_bytes = sum(self._plans[log_id].log_bytes for log_id in aborted_files)
        length = layout.stretch_bytes(log_bytes, self._cores)
        positions = partial(index_positions, files=self._disk)
        for log_id, aborted_file in aborted_files.items():
            plan = self._plans[log_id]
            with self._or_stop(plan):
                stretches += layout.stretches_of(plan, positions, aborted_file, length)
        tasks = layout.scan_tasks(stretches, self._cores)
        parts: dict[int, list[Part]] = defaultdict(list)
        for values in self._run(stage, [{"stretches": own} for own in tasks]):
            part = value_of(Part, values)
            with self._or_stop(self._plans[part.log_id]):
                self._require_own(self._plans[part.log_id], part.file)
                parts[part.log_id].append(part)
        for log_id, aborted_file in aborted_files.items():
            self._scans[log_id] = Scan(tuple(sorted(parts[log_id], key=_place)), aborted_file)
            self._unproven.append(log_id)

    def resolve(self) -> None:
        """Merge the maps, and decide about transactions meanwhile: the driver has nothing to do.

        Logs whose scan turns out to have been wrong are scanned and resolved again.
        """
        undecided = [plan for plan in self.sound() if plan.log_id not in self._transactions]
        with short_switch_interval(), ThreadPoolExecutor(1) as threads:
            deciding = threads.submit(self._decide, undecided)
            self._resolve(RESOLVE, self.sound())
            self._take_decided(deciding.result())
        again = {
            plan.log_id: exact_file
            for plan in self.sound()
            if (exact_file := self._transactions[plan.log_id].exact_file)
        }
        if again:
            self._scan(RESCAN, again)
            for log_id in again:
                self._verdicts.pop(log_id, None)
            self._resolve(RESOLVE_AGAIN, [p for p in self.sound() if p.log_id in again])
        release_entries((part for scan in self._scans.values() for part in scan.parts), self._disk)

    def _resolve(self, stage: str, plans: Sequence[LogPlan]) -> None:
        scans = {plan.log_id: self._scans[plan.log_id] for plan in plans}
        logs = {log_id: scan.parts_to_merge for log_id, scan in scans.items() if scan.parts}
        tasks = []
        for pairs in layout.resolve_tasks(list(logs.values()), self._cores):
            needed = dict.fromkeys(log_id for log_id, _ in pairs)
            own = [(log_id, logs[log_id]) for log_id in needed]
            tasks.append({"logs": own, "hash_partitions": pairs})
        for values in self._run(stage, tasks):
            verdict = value_of(Verdict, values)
            self._verdicts[verdict.log_id].append(verdict)

    def rewrite(
        self,
        take: Callable[[LogPlan, FinishedGroup], None],
        take_piece: Callable[[LogPlan, Rewritten], None] = lambda *_: None,
    ) -> None:
        """Rewrite all groups; take gets each one as soon as all of its pieces have come.

        take_piece: gets each piece before, as soon as it has come.
        """
        sound = self.sound()
        pieces = self._pieces_to_write(sound)
        rules = {plan.log_id: self._rules(plan) for plan in sound}
        tasks = []
        for own in layout.rewrite_tasks(pieces, self._cores, self._verdicts):
            needed = dict.fromkeys(piece.log_id for piece in own)
            tasks.append({"logs": [rules[log_id] for log_id in needed], "pieces": own})
        awaited: dict[tuple[int, int], _Awaited] = defaultdict(_Awaited)
        for piece in pieces:
            group = awaited[piece.log_id, piece.group]
            group.parts += piece.parts
            group.numbers.add(piece.number)

        def take_rewritten(values: list[Any]) -> None:
            piece = value_of(Rewritten, values)
            group = awaited[piece.log_id, piece.group]
            if piece.number not in group.numbers:
                return  # it has come before, perhaps from another try of its task
            group.numbers.remove(piece.number)
            group.rewritten.append(piece)
            self._rewritten[piece.log_id].append(piece)
            plan = self._plans[piece.log_id]
            with self._or_stop(plan):
                self._require_own(plan, *piece.staged_files, piece.log_file, piece.facts_file)
            if self.is_stopped(piece.log_id):
                return
            take_piece(plan, piece)
            if not group.numbers:
                group.rewritten.sort(key=lambda piece: piece.number)
                finished = self._finished(piece.log_id, piece.group, group)
                take(plan, finished)

        for values in self._run(REWRITE, tasks, take_rewritten):
            take_rewritten(values)

    def _pieces_to_write(self, plans: Sequence[LogPlan]) -> list[Piece]:
        scans = {plan.log_id: self._scans[plan.log_id].parts for plan in plans}
        total = sum(part.log_bytes for parts in scans.values() for part in parts)
        piece_bytes = layout.share_bytes(total, self._cores)
        return [
            _with_transactions(piece, self._transactions[plan.log_id])
            for plan in plans
            for piece in layout.pieces_of(plan, scans[plan.log_id], piece_bytes)
        ]

    def _finished(self, log_id: int, group: int, awaited: _Awaited) -> FinishedGroup:
        dropped = self._transactions[log_id].control_records_dropped.get(group, 0)
        return FinishedGroup(group, awaited.parts, awaited.rewritten, dropped)

    def _rules(self, plan: LogPlan) -> LogRules:
        return LogRules(
            log_id=plan.log_id,
            path=plan.path,
            kept_end_offset=plan.kept_end,
            delete_retention_ms=plan.delete_retention_ms,
            index_interval_bytes=plan.index_interval_bytes,
            segment_index_bytes=plan.segment_index_bytes,
            active_producers=plan.active_producers,
            verdicts=tuple(self._verdicts[plan.log_id]),
            directory_inode=self._disk.inode_of(plan.path),
        )

    def log_bytes(self) -> int:
        """What the stage that is to come works through."""
        return sum(self._log_bytes[plan.log_id] for plan in self.sound())

    def _run(
        self,
        stage: str,
        tasks: list[dict[str, Any]],
        take: Callable[[list[Any]], None] | None = None,
    ) -> list[list[Any]]:
        """Run the tasks of a stage, note the problems, and return the other rows' values.

        take: gets the values of partial results.
        """
        values, problems = self._runner.run(stage, tasks, self.log_bytes(), take)
        for problem in problems:
            self.stop(problem.log_id, problem)
        return values


def release_entries(parts: Iterable[Part], disk: Disk = LOCAL) -> None:
    """Give the disk blocks of entries that nobody merges any more back: holes in their files.

    Where they stand is what tasks have said, and nothing has proved it of entries that were not
    merged. So no file is touched whose parts do not stand one after another. Nothing is raised.
    """
    of_file = defaultdict[str, list[Part]](list)
    for part in parts:
        of_file[part.file].append(part)
    for path, own in of_file.items():
        own.sort(key=lambda part: part.block_at)
        if not _stand_apart(own):
            continue
        with suppress(OSError), disk.open_raw(path, "r+b") as file:
            for part in own:
                punch_hole(file.fileno(), part.block_at, part.entries * ENTRY_BYTES)


def _stand_apart(parts: Sequence[Part]) -> bool:
    """Say whether each part of a file, by rising position, ends before the next begins."""
    ends = [part.block_at + part.entries * ENTRY_BYTES for part in parts]
    are_whole = all(end <= part.txn_at for end, part in zip(ends, parts, strict=True))
    return are_whole and all(a.txn_at <= b.block_at for a, b in pairwise(parts))


def _with_transactions(piece: Piece, of_log: TransactionsOfLog) -> Piece:
    if of_log.decisions is None:
        return piece
    return piece._replace(
        txn_index_file=of_log.txn_index_files.get(piece.group, ""),
        discardable_file=of_log.discardable_files.get(piece.group, ""),
        changes_markers=piece.group in of_log.decisions.changed_groups,
    )


def _place(part: Part) -> tuple[int, int, int]:
    if not part.sections:  # no scan leaves such a part: the proof says what is missing then
        return part.group, -1, -1
    return part.group, part.sections[0].segment, part.sections[0].start


def _check_empty_segments(plan: LogPlan, files: Files) -> None:
    """Raise CorruptFileError where an index has entries, but its log, which nobody reads, none."""
    for group in plan.groups:
        for segment in group.segments:
            if not segment.log_bytes:
                log_path = os.path.join(plan.path, file_name(segment.base_offset, LOG))
                index_positions(log_path, files)
