"""Make the report on a log of what the stages left of it.

It notes where a batch was compressed again by another build of a codec than that of the chosen
Kafka, so that its bytes may differ (V-5); with --exact-bytes that is refused
(`require_exact_bytes`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from compactor.cleaning.stage_values import LogResult
from compactor.cleaning.swapper import Swapped
from compactor.errors import RefusedError
from compactor.host.printable import counted
from compactor.host.shell_commands import named
from compactor.outcome.round_report import Counts, LogReport, LogStatus
from compactor.planning.candidate import OTHER_BYTES_NOTE
from compactor.planning.log_retention import MergedSegments
from compactor.planning.skipped_logs import problem_report, untouched_report
from compactor.reason_codes import ReasonCode
from storage.codecs.compression import build_notes
from storage.kafka_versions import CodecBuilds

LEGACY_EMPTIED_NOTE = (
    "the last batch of the range is of message format v0 or v1 and loses all its records: an empty "
    "batch of format v2 takes its place, where Kafka's cleaner would stop"
)
REFUSED_NOTE = (
    "{} rebuilt where Kafka's cleaner would stop: a record timestamp is below -1, or the batch has "
    "a producer id but no sequence or epoch"
)
SWAP_BROKE_OFF_NOTE = (
    f"the swap of a segment group broke off: {named('recover')}, the next run or a broker settles "
    "it"
)


def log_report(result: LogResult, swapped: Swapped, dry_run: bool) -> LogReport:
    """The report on a log that went through the stages, cleaned or not."""
    plan, problem = result.plan, result.problem
    if problem is not None:
        report = problem_report(plan, problem, swapped.groups)
        broken_off = (SWAP_BROKE_OFF_NOTE,) if swapped.broke_off else ()
        return replace(report, notes=(*report.notes, *broken_off))
    superseded = sum(p.superseded for p in result.parts)
    superseded += sum(v.superseded for v in result.verdicts)
    control_records = sum(part.control_records for part in result.parts)
    control_records_kept = sum(piece.control_records_kept for piece in result.rewritten)
    counts = Counts(
        records_read=sum(part.records for part in result.parts),
        records_kept=sum(piece.records_kept for piece in result.rewritten) + control_records_kept,
        dropped_superseded=superseded,
        dropped_tombstone=sum(verdict.expired for verdict in result.verdicts),
        dropped_null_key=sum(part.null_keys for part in result.parts),
        dropped_aborted=sum(part.aborted for part in result.parts),
        dropped_marker=control_records - control_records_kept,
        batches_read=sum(part.batches for part in result.parts),
        batches_kept=sum(piece.batches_kept for piece in result.rewritten),
        batches_rebuilt=sum(piece.batches_rebuilt for piece in result.rewritten),
        batches_emptied=sum(piece.batches_emptied for piece in result.rewritten),
    )
    return replace(
        untouched_report(plan, LogStatus.WOULD_CLEAN if dry_run else LogStatus.CLEANED),
        segments_after=len(plan.groups) + swapped.cut_segments,
        bytes_after=sum(piece.log_bytes for piece in result.rewritten),
        counts=counts,
        notes=(*plan.notes, *_notes(result, swapped)),
        end_offset=plan.end_offset,
    )


def cleaned_groups(result: LogResult) -> tuple[MergedSegments, ...]:
    """What comes in the place of the segment groups of a log that went through the stages."""
    log_bytes: dict[int, int] = defaultdict(int)
    for piece in result.rewritten:
        log_bytes[piece.group] += piece.log_bytes
    return tuple(
        MergedSegments(tuple(segment.base_offset for segment in group.segments), log_bytes[number])
        for number, group in enumerate(result.plan.groups)
    )


def require_exact_bytes(results: Iterable[LogResult], is_wanted: bool) -> None:
    """Raise RefusedError, if wanted, where the bytes of a log could be others than its Kafka's.

    Asked when all records are read, and again when all is rewritten, before the first swap: another
    executor may have done that.
    """
    found = {
        result.plan.name: why
        for result in results
        if result.problem is None
        for why in other_bytes(result)
    }
    if not found or not is_wanted:
        return
    name, why = next(iter(found.items()))
    raise RefusedError(
        f"--exact-bytes: {counted(len(found), 'log')} could come out in other bytes, {name} for "
        f"one: {why}",
        ReasonCode.OTHER_CODEC,
        remedy="Install the build that is named, choose another Kafka (--kafka), or leave out "
        "--exact-bytes: the records are the same. Nothing was changed",
    )


def other_bytes(result: LogResult) -> tuple[str, ...]:
    """Name the codecs whose library build differs from that of this log's Kafka.

    The builds are those of the tasks that rewrote the log, or of the tasks that read it if nothing
    was rebuilt.
    """
    codecs, rebuilt = 0, [piece for piece in result.rewritten if piece.batches_rebuilt]
    for part in result.parts:
        codecs |= part.codecs
    workers = {CodecBuilds(*each.builds) for each in rebuilt or result.parts if each.builds}
    notes = (
        note
        for builds in sorted(workers)
        for note in build_notes(result.plan.kafka, codecs, builds)
    )
    return tuple(dict.fromkeys(notes))


def _notes(result: LogResult, swapped: Swapped) -> Iterator[str]:
    """Where Kafka's cleaner would have stopped; docs/differences.md."""
    sparse = sum(piece.sparse_indexes for piece in result.rewritten) + swapped.sparse_indexes
    if sparse:
        yield (
            f"{counted(sparse, 'segment')} with fewer index entries than usual: "
            "segment.index.bytes has no room for all of them"
        )
    if swapped.cut_segments:
        yield (
            f"{counted(swapped.cut_segments, 'segment')} more than Kafka's cleaner would make: "
            "a cleaned segment would have been larger than 2 GiB"
        )
    unlisted = result.transactions.unlisted_aborts
    if unlisted:
        yield (
            f"aborted transactions that are in no .txnindex: {unlisted:,}; "
            "their records are treated as committed, as by Kafka"
        )
    if any(piece.batches_rebuilt for piece in result.rewritten):
        for why in other_bytes(result):
            yield OTHER_BYTES_NOTE.format(why)
    if any(piece.legacy_emptied for piece in result.rewritten):
        yield LEGACY_EMPTIED_NOTE
    refused = sum(piece.refused for piece in result.rewritten)
    if refused:
        yield REFUSED_NOTE.format("1 batch" if refused == 1 else f"{refused:,} batches")
