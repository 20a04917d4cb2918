"""What `verify` has found, as JSON and as the line at its end."""

from compactor.host.printable import counted, iso_time, size_text
from compactor.verification.proof import REASONS
from compactor.verification.verify import Verification
from compactor.verification.verify_against import Comparison
from compactor.verification.verify_batches import Finding
from compactor.views.report_json import JsonObject


def verification_document(found: Verification) -> JsonObject:
    """The fields that follow those of the summary."""
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
    """The totals, for the summary."""
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
    """One object for each partition that was cleaned."""
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
    """What was looked at, for a person."""
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
