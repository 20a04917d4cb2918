"""The view of `verify`: its numbers and findings, and the comparison with a copy from before."""

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, iso_time, printable, size_text
from compactor.host.shell_commands import named
from compactor.verification.evidence import CleaningClock
from compactor.verification.proof import REASONS, TRUNCATED
from compactor.verification.verify import Verification
from compactor.verification.verify_against import Compared, Comparison
from compactor.verification.verify_batches import Finding
from compactor.views.fitting_table import Column, table_lines, whole_words
from compactor.views.report_json import JsonObject


def verification_document(found: Verification) -> JsonObject:
    """Return the fields that follow those of the summary."""
    return {
        "totals": {
            "partitions": found.partitions,
            "segments": found.segments,
            "batches": found.batches,
            "records": found.records,
            "log_bytes": found.log_bytes,
            "findings": len(found.findings),
        },
        "notices": list(found.notices),
    }


def finding_document(finding: Finding) -> JsonObject:
    return finding._asdict()


def comparison_document(found: Comparison) -> JsonObject:
    """Return the totals of a comparison, for the summary."""
    held = found.partitions
    return {
        "before": found.before,
        "as_of_ms": found.clock.as_of_ms,
        "as_of": iso_time(found.clock.as_of_ms),
        "as_of_is_clock_of_cleaning": found.clock.is_exact,
        "partitions": len(held) + found.untouched,
        "untouched_partitions": found.untouched,
        "unmatched_partitions": len(found.unmatched),
        "partitions_sharing_files": found.linked,
        "keys": sum(p.keys for p in held),
        "records_before": sum(p.records_before for p in held),
        "records_after": sum(p.records_after for p in held),
        "gone": {reason: sum(p.gone[reason] for p in held) for reason in REASONS},
        "soundness": {soundness.value: count for soundness, count in found.counts().items()},
        "findings": len(found.findings),
    }


def partition_documents(found: Comparison) -> list[JsonObject]:
    """Return an object for each partition that was cleaned."""
    return [
        {
            "partition": p.name,
            "log_start_offset": p.log_start_offset,
            "log_start_offset_before": p.log_start_before,
            "keys": p.keys,
            "records_before": p.records_before,
            "records_after": p.records_after,
            "soundness": p.soundness.value,
            "log_start_shown_by": (
                p.log_start_shown_by if p.log_start_offset > p.log_start_before else None
            ),
            "gone": p.gone,
            "batches_of_disputed_transactions": p.disputed_batches,
            "horizon_moments": p.horizon_moments,
            "unreported_moments": p.unreported_moments,
            "possible_removals": p.possible_removals,
            "appended_from": p.appended_from,
            "checkpoint_missing": p.is_cut_short,
        }
        for p in found.partitions
    ]


def verification_line(found: Verification) -> str:
    """Return what was checked, as a line for a person."""
    batches = f"{found.batches:,} batch{'' if found.batches == 1 else 'es'}"
    parts = [
        counted(found.partitions, "partition"),
        counted(found.segments, "segment"),
        batches,
        counted(found.records, "record"),
        size_text(found.log_bytes),
    ]
    what = ", ".join(parts)
    count = counted(len(found.findings), "finding") if found.findings else "all sound"
    return f"{what}: {count}"


SHOWN_PARTITIONS = 40
SHOWN_FINDINGS = 200
SHOWN_NAMES = 3


def comparison_view(found: Comparison, width: int) -> RenderableType:
    """Return what was compared, what is gone and why, and whether it holds."""
    parts: list[RenderableType] = []
    if found.partitions:
        parts += _lines(found.partitions, width)
    if len(found.partitions) > SHOWN_PARTITIONS:
        more = len(found.partitions) - SHOWN_PARTITIONS
        parts.append(Text(f"… and {more:,} more (all: --report FILE.json)", "dim"))
    findings = map(str, found.findings[:SHOWN_FINDINGS])
    for line in (*_notes(found), *findings, _summary(found)):
        parts += whole_words(printable(line), width)
    return Group(*parts)


def _lines(partitions: list[Compared], width: int) -> list[Text]:
    reasons = [r for r in REASONS if any(p.gone[r] for p in partitions)]
    columns = (
        Column("keys", 2),
        Column("records", 0),
        *(Column(reason.replace("_", " "), 1) for reason in reasons),
    )
    shown = partitions[:SHOWN_PARTITIONS]
    rows = [[printable(partition.name), *_cells([partition], reasons)] for partition in shown]
    if len(partitions) > 1:
        rows.append(["total", *_cells(partitions, reasons)])
    return table_lines("partition", columns, rows, width)


def _cells(partitions: list[Compared], reasons: list[str]) -> list[str]:
    before = sum(p.records_before for p in partitions)
    after = sum(p.records_after for p in partitions)
    gone = [f"{sum(p.gone[reason] for p in partitions):,}" for reason in reasons]
    return [f"{sum(p.keys for p in partitions):,}", f"{before:,} → {after:,}", *gone]


def _notes(found: Comparison) -> list[str]:
    notes = [_clock(found.clock)]
    notes += [
        f"{p.name}: the log started at offset {p.log_start_before} and starts at "
        f"{p.log_start_offset} now; what lay below was deleted ({p.log_start_shown_by} shows it)"
        for p in found.partitions
        if p.log_start_offset > p.log_start_before
    ]
    notes += [
        f"{p.name}: no checkpoint says how far it was cleaned; checked up to the active segment"
        for p in found.partitions
        if p.is_cut_short and any(p.gone.values())
    ]
    notes += [
        f"{p.name}: no report has {counted(p.unreported_moments, 'delete horizon')} that a "
        "cleaning set since: a broker's cleaner did, or a run that was killed"
        for p in found.partitions
        if p.unreported_moments
    ]
    notes += [
        f"{p.name}: a cleaning that no report tells of has removed tombstones or markers "
        f"({p.possible_removals:,}); the cleaner's checkpoint or a delete horizon shows one, and "
        "delete.retention.ms has passed since the copy was made"
        for p in found.partitions
        if p.possible_removals
    ]
    notes += [
        f"{p.name}: {named('log truncate')} deleted {counted(p.gone[TRUNCATED], 'record')} from "
        f"offset {p.appended_from or p.log_end} on (--run-report shows it)"
        for p in found.partitions
        if p.gone[TRUNCATED]
    ]
    if not (found.clock.is_exact or found.clock.evidence.has_reports):
        notes += [
            f"{p.name}: delete horizons of {p.horizon_moments:,} moments were set, as by a run "
            "that was interrupted and one that completed it; --run-report checks each"
            for p in found.partitions
            if p.horizon_moments > 1
        ]
    notes += [
        f"{p.name}: what is there from offset {p.appended_from} on was appended since"
        for p in found.partitions
        if p.appended_from is not None
    ]
    notes += [
        f"{p.name}: .txnindex and markers disagreed on "
        f"{counted(p.disputed_batches, 'batch', 'batches')} before the cleaning "
        "already; consumers go by .txnindex, and so does this check"
        for p in found.partitions
        if p.disputed_batches
    ]
    if found.linked:
        notes.append(
            f"{counted(found.linked, 'partition')} with files that the copy shares: a change "
            "inside of such a file would show on both sides"
        )
    if found.unmatched:
        names = ", ".join(found.unmatched[:SHOWN_NAMES])
        count = counted(len(found.unmatched), "partition")
        notes.append(f"no copy to compare with: {count} ({names})")
    return notes


def _horizons_from(clock: CleaningClock) -> int:
    return clock.as_of_ms if clock.horizons_from_ms is None else clock.horizons_from_ms


def _clock(clock: CleaningClock) -> str:
    held = f"delete horizons are checked against {iso_time(_horizons_from(clock))}"
    if clock.is_exact:
        return f"{held}, taken as the clock of the cleaning"
    return f"{held}, this machine's clock; --run-report or --as-of gives that of the cleaning"


def _summary(found: Comparison) -> str:
    held = f"{counted(len(found.partitions), 'partition')} changed, {found.untouched:,} untouched"
    counts = ", ".join(f"{count:,} {soundness}" for soundness, count in found.counts().items())
    held += f" ({counts})"
    if found.findings:
        return f"against {found.before}: {held}: {counted(len(found.findings), 'finding')}"
    return (
        f"against {found.before}: {held}: every key has its latest record, all that is left is as "
        "it was, all that is gone had a reason"
    )
