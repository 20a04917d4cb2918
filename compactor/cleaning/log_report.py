"""From what the stages made of a log to what the report says of it."""

from collections.abc import Iterator
from dataclasses import replace

from compactor.cleaning.stages import LogOutcome
from compactor.host.printable import counted
from compactor.planning.uncleaned import problem_report, untouched_report
from compactor.round_report import Counts, LogReport, LogStatus

LEGACY_EMPTIED_NOTE = (
    "the last batch of the range is of message format v0 or v1 and loses all its records: an empty "
    "batch of format v2 takes its place, where Kafka's cleaner would stop"
)
REFUSED_NOTE = (
    "{} rebuilt where Kafka's cleaner would stop: a record timestamp is below -1, or the batch has "
    "a producer id but no sequence or epoch"
)

SWAP_BROKE_OFF_NOTE = (
    "the swap of a segment group broke off: compactor recover, the next run or a broker settles it"
)


def log_report(outcome: LogOutcome, dry_run: bool) -> LogReport:
    """The report on a log that went through the stages, cleaned or not."""
    plan, problem = outcome.plan, outcome.problem
    if problem is not None:
        report = problem_report(plan, problem, outcome.swapped_groups)
        broken_off = (SWAP_BROKE_OFF_NOTE,) if outcome.swap_broke_off else ()
        return replace(report, notes=(*report.notes, *broken_off))
    superseded = sum(p.superseded for p in outcome.parts)
    superseded += sum(v.superseded for v in outcome.verdicts)
    control_records = sum(part.control_records for part in outcome.parts)
    control_records_kept = sum(piece.control_records_kept for piece in outcome.pieces)
    counts = Counts(
        records_read=sum(part.records for part in outcome.parts),
        records_kept=sum(piece.records_kept for piece in outcome.pieces) + control_records_kept,
        dropped_superseded=superseded,
        dropped_tombstone=sum(verdict.expired for verdict in outcome.verdicts),
        dropped_null_key=sum(part.null_keys for part in outcome.parts),
        dropped_aborted=sum(part.aborted for part in outcome.parts),
        dropped_marker=control_records - control_records_kept,
        batches_read=sum(part.batches for part in outcome.parts),
        batches_kept=sum(piece.batches_kept for piece in outcome.pieces),
        batches_rebuilt=sum(piece.batches_rebuilt for piece in outcome.pieces),
        batches_emptied=sum(piece.batches_emptied for piece in outcome.pieces),
    )
    return replace(
        untouched_report(plan, LogStatus.WOULD_CLEAN if dry_run else LogStatus.CLEANED),
        segments_after=len(plan.groups) + outcome.cut_segments,
        bytes_after=sum(piece.log_bytes for piece in outcome.pieces),
        counts=counts,
        notes=(*plan.notes, *_notes(outcome)),
        end_offset=plan.end_offset,
    )


def _notes(outcome: LogOutcome) -> Iterator[str]:
    """Where Kafka's cleaner would have stopped; docs/differences.md."""
    sparse = sum(piece.sparse_indexes for piece in outcome.pieces) + outcome.sparse_indexes
    if sparse:
        yield (
            f"{counted(sparse, 'segment')} with fewer index entries than usual: "
            "segment.index.bytes has no room for all of them"
        )
    if outcome.cut_segments:
        yield (
            f"{counted(outcome.cut_segments, 'segment')} more than Kafka's cleaner would make: "
            "a cleaned segment would have been larger than 2 GiB"
        )
    if outcome.unlisted_aborts:
        yield (
            f"aborted transactions that are in no .txnindex: {outcome.unlisted_aborts:,}; "
            "their records are treated as committed, as by Kafka"
        )
    if any(piece.legacy_emptied for piece in outcome.pieces):
        yield LEGACY_EMPTIED_NOTE
    refused = sum(piece.refused for piece in outcome.pieces)
    if refused:
        yield REFUSED_NOTE.format("1 batch" if refused == 1 else f"{refused:,} batches")
