"""Reports of rounds that never were, for tests of how they are shown."""

from compactor.outcome.round_report import CleaningReport, Counts, LogReport, LogStatus, PhaseReport

COUNTS = Counts(
    records_read=1000,
    records_kept=400,
    dropped_superseded=580,
    dropped_tombstone=15,
    dropped_null_key=5,
    batches_read=10,
    batches_kept=9,
    batches_rebuilt=6,
    batches_emptied=1,
)


def log(
    number: int = 0,
    status: LogStatus = LogStatus.CLEANED,
    reason: str | None = None,
    topic: str = "orders",
) -> LogReport:
    if status not in (LogStatus.CLEANED, LogStatus.WOULD_CLEAN):
        return LogReport("/data", topic, number, status, reason)
    return LogReport(
        "/data",
        topic,
        number,
        status,
        None,
        0,
        900,
        7,
        2,
        5_000_000,
        2_000_000,
        COUNTS,
        end_offset=900,
        delete_retention_ms=60_000,
    )


def report(*logs: LogReport, dry_run: bool = False) -> CleaningReport:
    return CleaningReport(
        version="1.2.3",
        run_id="cafe",
        dry_run=dry_run,
        as_of_ms=1_700_000_000_123,
        started_at_ms=1_700_000_001_000,
        seconds=4.0,
        logs=logs,
        phases=(PhaseReport("survey", 0.01, 0), PhaseReport("scan", 2.0, 5_000_000)),
    )
