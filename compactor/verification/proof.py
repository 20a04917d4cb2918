"""What a reader's proof of one partition comes to: counts, reasons and findings."""

from dataclasses import dataclass, field

from compactor.log_checks.findings import Finding

MAX_FINDINGS = 20  # of one partition; then the rest is not looked at
SUPERSEDED, EXPIRED, ABORTED, NULL_KEY, RETENTION, MARKERS, TRUNCATED = REASONS = (
    "superseded",
    "tombstone",
    "aborted",
    "null_key",
    "below_log_start",
    "marker",
    "truncated",
)

REMOVALS = (EXPIRED, RETENTION, TRUNCATED)  # of what readers of the latest records had


@dataclass(slots=True)
class Proof:
    """What was compared, what is gone and why, and what is not as it should be."""

    records_before: int = 0
    records_after: int = 0
    keys: int = 0
    gone: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    disputed_batches: int = 0  # of which index and markers said different things before already
    horizon_moments: int = 0  # of delete horizons that were set; each is that of a cleaning
    unreported_moments: int = 0  # of them, that no report has
    possible_removals: int = 0  # of them gone, by a cleaning that no report tells of
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.findings) > MAX_FINDINGS

    def take(self, finding: Finding) -> None:
        """Note a finding; one more than the limit, which says so."""
        if len(self.findings) == MAX_FINDINGS:
            more = "there is more; the rest of this partition was not looked at"
            finding = finding._replace(problem=more)
        if not self.is_full:
            self.findings.append(finding)
