"""Hold what each stage of a round makes of a log. No value changes once it is made."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cleaner_jobs.messages import LogPlan, Part, Rewritten, TaskProblem, Verdict
from cleaner_jobs.txn_batches import Int64Array
from storage.formats.txn_index_columns import Entries


class Scan(NamedTuple):
    """What was read of a log, from which the round goes on."""

    parts: tuple[Part, ...]  # in the order of the log
    aborted_file: str  # the aborted transactions that its tasks went by

    @property
    def parts_to_merge(self) -> tuple[Part, ...]:
        """Without their sections: each task of a resolve gets all parts, and none of these."""
        return tuple(part._replace(sections=()) for part in self.parts)


class TxnDecisions(NamedTuple):
    """What becomes of the transactions of one log."""

    agrees: bool  # whether the scan, which went by the expected ranges, was right
    discardable: Int64Array  # base offsets of control batches, ascending
    changed_groups: frozenset[int]  # those in which a control batch is not copied as it is
    txn_indexes: dict[int, Entries]  # by group: the entries of its destination
    control_records_dropped: dict[int, int]  # by group


class TransactionsOfLog(NamedTuple):
    """What was decided about the transactions of a log, and where its tasks find it."""

    decisions: TxnDecisions | None = None  # None: no transactional or control batch
    unlisted_aborts: int = 0  # transactions that are taken for committed, as by Kafka
    discardable_files: Mapping[int, str] = MappingProxyType({})  # by group
    txn_index_files: Mapping[int, str] = MappingProxyType({})  # by group
    exact_file: str = ""  # what a new scan has to go by; "": it went by what is so

    @property
    def control_records_dropped(self) -> Mapping[int, int]:
        """How many go, by group."""
        return self.decisions.control_records_dropped if self.decisions else {}


class FinishedGroup(NamedTuple):
    """A segment group all of whose pieces are rewritten."""

    group: int
    parts: Sequence[Part]
    rewritten: Sequence[Rewritten]  # by number
    control_records_dropped: int = 0  # as was decided


class LogResult(NamedTuple):
    """All that the stages have made of a log."""

    plan: LogPlan  # shortened where its map had no room
    problem: TaskProblem | None
    parts: tuple[Part, ...]
    verdicts: tuple[Verdict, ...]
    rewritten: tuple[Rewritten, ...]
    transactions: TransactionsOfLog


NOT_SCANNED = Scan((), "")
WITHOUT_TRANSACTIONS = TransactionsOfLog()
