"""Tells lies in the middle of a round, one about each log, in this process or in a worker."""

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cleaner_jobs.kernels.offset_map import (
    keep_latest,
    merge_latest,
    pack_part,
    sum_fingerprints,
)
from cleaner_jobs.messages import PART, REWRITTEN, VERDICT, Part, Piece, Rewritten, Verdict
from cleaner_jobs.tasks import rewrite_task as piece_module
from cleaner_jobs.tasks import scan as scan_module
from cleaner_jobs.tasks import task
from cleaner_jobs.tasks.cleaned_segment import read_back
from cleaner_jobs.tasks.resolve import resolve_hash_partition
from cleaner_jobs.tasks.scan import txn_batches
from cleaner_jobs.tasks.segment_facts import IndexesInMaking
from storage.file_names import LOG, TXN_INDEX
from storage.files.files import Files
from storage.formats.batch_columns import (
    CONTROL_RECORD,
    EXPIRED,
    KEEP,
    REASON_MASK,
    SUPERSEDED,
)
from tests.lies.about_batches import batch_lies
from tests.lies.about_decisions import Merged, Records, decision_lies
from tests.lies.about_indexes import index_lies
from tests.lies.about_rows import row_lies
from tests.lies.lie import Case, Known, Lie, NothingToTell, Place, Row
from tests.support.local_round import LocalRound, Rows
from tests.support.reference_batch import split

TASKS = "cleaner_jobs.tasks"
ORDERS = "LIES"  # the variable that names the file of orders to a worker
ROWS = {  # by stage
    "scan": (Place.SCANNED, PART, Part._fields),
    "resolve": (Place.RESOLVED, VERDICT, Verdict._fields),
    "rewrite": (Place.REWRITTEN, REWRITTEN, Rewritten._fields),
}


@cache
def lies() -> tuple[Lie, ...]:
    return (*batch_lies(), *index_lies(), *decision_lies(), *row_lies())


@cache
def known_of(before: Path) -> Known:
    """A log as it was before, in a directory."""
    segments = {
        int(path.stem): tuple(split(path.read_bytes())) for path in sorted(before.glob(f"*{LOG}"))
    }
    entries = b"".join(path.read_bytes() for path in sorted(before.glob(f"*{TXN_INDEX}")))
    return Known(before.name, segments, entries)


class Orders(NamedTuple):
    """What lies are to be told in a round."""

    cases: Mapping[str, Case]  # by partition
    names: Mapping[int, str]  # of partitions, by log id
    before: Path  # a directory of all sources, by name
    told: Path  # a directory, with a file for each partition about which its lie was told

    def save(self, path: Path) -> None:
        """Write them down for a worker."""
        cases = {name: (str(c.lie), c.source, c.seed) for name, c in self.cases.items()}
        directories = str(self.before), str(self.told)
        path.write_text(json.dumps([cases, [*self.names.items()], *directories]))


def load_orders(path: Path) -> Orders:
    """Read what `Orders.save` wrote."""
    by_name = {str(lie): lie for lie in lies()}
    cases, names, before, told = json.loads(path.read_text())
    found = {name: Case(by_name[lie], source, seed) for name, (lie, source, seed) in cases.items()}
    return Orders(found, dict(names), Path(before), Path(told))


class Liar:
    """Has one lie for each partition, and tells it once."""

    def __init__(self, orders: Callable[[], Orders]) -> None:
        """orders: those of the round that is under way."""
        self._orders = orders
        self._at_work: int | None = None  # the log of which a task is computing something
        self._writing = False  # a segment is being written, not only looked at

    def _lie(self, log_id: int | None, place: Place, value: Any) -> Any:
        """What is said there in the place of a value; the value if nothing is to be."""
        orders = self._orders()
        name = None if log_id is None else orders.names[log_id]
        case = None if name is None else orders.cases.get(name)
        if case is None or name is None or case.lie.place != place or (orders.told / name).exists():
            return value
        chance = random.Random(str(case))
        try:
            said = case.lie.tell(value, chance, known_of(orders.before / case.source))
        except NothingToTell:
            said = None
        if said is None:
            return value
        (orders.told / name).touch(exist_ok=False)
        return said

    def in_tasks(self, patch: pytest.MonkeyPatch) -> None:
        """Lie in the tasks that this process does, until the patches are undone."""
        self._about_logs(patch)
        self._about_indexes(patch)
        self._about_scans(patch)
        self._about_maps(patch)

    @contextmanager
    def about_rows(self, local: LocalRound) -> Iterator[None]:
        """Lie about the rows of all tasks of a stage, wherever they were done."""
        for stage in ROWS:
            local.after[stage] = self._about_rows(stage)
        try:
            yield
        finally:
            local.after.clear()

    def _about_logs(self, patch: pytest.MonkeyPatch) -> None:
        def lying(path: str, *rest: Any) -> Any:
            self._change(path)
            return read_back(path, *rest)

        patch.setattr(f"{TASKS}.rewrite_task.read_back", lying)

    def _change(self, path: str) -> None:
        with open(path, "rb") as source:
            batches = list(split(source.read()))
        said = self._lie(self._at_work, Place.LOG, batches)
        if said is batches:
            return
        times = os.stat(path)
        with open(path, "r+b") as out:
            out.write(b"".join(said))
            out.truncate()
        os.utime(path, ns=(times.st_mtime_ns, times.st_mtime_ns))

    def _about_indexes(self, patch: pytest.MonkeyPatch) -> None:
        finish = IndexesInMaking.finish
        new_txn_index = piece_module._new_txn_index

        def lying(making: Any) -> Any:
            made = finish(making)
            if not self._writing:
                return made
            offsets = self._lie(self._at_work, Place.OFFSET_INDEX, made.offset_index)
            times = self._lie(self._at_work, Place.TIME_INDEX, made.time_index)
            return made._replace(offset_index=offsets, time_index=times)

        def lying_of_transactions(piece: Piece, files: Files) -> bytes | None:
            data = new_txn_index(piece, files)
            if data is None or not self._writing:
                return data
            said: bytes = self._lie(self._at_work, Place.TXN_INDEX, data)
            return said

        patch.setattr(IndexesInMaking, "finish", lying)
        patch.setattr(piece_module, "_new_txn_index", lying_of_transactions)
        for name in ("_write_group", "_write_part_of_group"):
            patch.setattr(piece_module, name, self._noting(getattr(piece_module, name)))

    def _noting(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def noted(piece: Piece, *rest: Any) -> Any:
            self._at_work, self._writing = piece.log_id, True
            try:
                return write(piece, *rest)
            finally:
                self._at_work, self._writing = None, False

        return noted

    def _about_scans(self, patch: pytest.MonkeyPatch) -> None:
        finish, take = scan_module.PartBuilder.finish, scan_module.PartBuilder._take

        def noted(builder: Any) -> Iterator[Part]:
            if builder._stretch is not None:
                self._at_work = builder._stretch.log_id
            return finish(builder)

        def noted_too(builder: Any, stretch: Any, *rest: Any) -> None:
            self._at_work = stretch.log_id
            take(builder, stretch, *rest)

        columns: list[Any] = []  # of the part at work

        def packed(of_part: Any, *rest: Any) -> int:
            columns[:] = of_part
            return pack_part(of_part, *rest)

        def lying(states: Any, first_offset: int, entries: Any, starts: Any, table: Any) -> Any:
            keep_latest(states, first_offset, entries, starts, table)
            records = Records(*columns)
            self._lie(self._at_work, Place.STATES, records)
            bits = (len(starts) - 1).bit_length() - 1
            pack_part(tuple(columns), first_offset, bits, entries, starts)
            reasons = states & REASON_MASK
            may_stay = np.isin(reasons, (KEEP, EXPIRED)) & (states & CONTROL_RECORD == 0)
            own = tuple(column[may_stay] for column in columns)
            return int((reasons == SUPERSEDED).sum()), *sum_fingerprints(own, len(own[0]))

        def lying_of_transactions(*arguments: Any) -> Any:
            return self._lie(self._at_work, Place.TXN_BATCHES, txn_batches(*arguments))

        patch.setattr(scan_module.PartBuilder, "finish", noted)
        patch.setattr(scan_module.PartBuilder, "_take", noted_too)
        patch.setattr(f"{TASKS}.scan.pack_part", packed)
        patch.setattr(f"{TASKS}.scan.keep_latest", lying)
        patch.setattr(f"{TASKS}.scan.txn_batches", lying_of_transactions)

    def _about_maps(self, patch: pytest.MonkeyPatch) -> None:
        def noted(parts: Sequence[Part], *rest: Any) -> Verdict:
            self._at_work = parts[0].log_id
            return resolve_hash_partition(parts, *rest)

        def lying(entries: Any, count: int, table: Any, superseded: Any) -> int:
            keys: int = merge_latest(entries, count, table, superseded)
            self._lie(self._at_work, Place.MAP, Merged(entries[:count], superseded[:count]))
            return keys

        patch.setattr(f"{TASKS}.task.resolve_hash_partition", noted)
        patch.setattr(f"{TASKS}.resolve.merge_latest", lying)

    def _about_rows(self, stage: str) -> Callable[[Rows], Rows]:
        place, kind, fields = ROWS[stage]

        def lying(rows: Rows) -> Rows:
            others = [row for row in rows if row[0] != kind]
            values = [dict(zip(fields, json.loads(v), strict=True)) for k, v in rows if k == kind]
            said: Rows = []
            of_logs: dict[int, list[Row]] = {}
            for value in values:
                of_logs.setdefault(value["log_id"], []).append(value)
            for log_id, of_log in of_logs.items():
                told: list[Row] = self._lie(log_id, place, of_log)
                said += [(kind, json.dumps([row[name] for name in fields])) for row in told]
            return [*said, *others]

        return lying


def lie_in_workers() -> None:
    """Lie in all tasks of this process and of those that it forks, by the orders of each round."""
    path, orders = Path(os.environ[ORDERS]), list[Orders]()
    run_task = task.run_task

    def run_lying(*work: Any) -> Iterator[Any]:
        orders[:] = [load_orders(path)]
        yield from run_task(*work)

    patch = pytest.MonkeyPatch()
    Liar(lambda: orders[0]).in_tasks(patch)
    patch.setattr(task, "run_task", run_lying)
