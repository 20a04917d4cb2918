"""Made-up results for the tests, with numbers that are easily reckoned with."""

from tests.bench.results import (
    ALL,
    COUNT,
    DRIVER,
    JVM,
    MERGE,
    RESOLVE,
    SCAN,
    WORKERS,
    EngineResult,
    FleetResult,
    InspectionResult,
    LogResult,
    Outcome,
    Peak,
    Results,
    Sample,
    SwapResult,
)
from tests.bench.workloads import DRY_RUN, KAFKA, LOCAL, LOCAL_COLD, OURS, RUN

MIB = 1024 * 1024


def log_result(name: str = "100b-none", log_bytes: int = 500_000_000) -> LogResult:
    """Return three turns; the medians are 10, 1, 8, 2, 4 and 1.6 s."""
    peaks = {
        DRIVER: Peak(200 * MIB, 150 * MIB, 100 * MIB),
        JVM: Peak(400 * MIB, 390 * MIB, 380 * MIB),
        WORKERS: Peak(300 * MIB, 180 * MIB, 120 * MIB),
        ALL: Peak(1300 * MIB, 900 * MIB, 800 * MIB),
    }
    smaller = {
        DRIVER: Peak(170 * MIB, 130 * MIB, 90 * MIB),
        WORKERS: Peak(250 * MIB, 160 * MIB, 110 * MIB),
        ALL: Peak(700 * MIB, 600 * MIB, 500 * MIB),
    }
    return LogResult(
        name,
        log_bytes,
        Outcome(123, 1000, 250),
        {
            "kafka": [Sample(9, 11), Sample(12, 13), Sample(10, 12)],
            "cp": [Sample(1, 1)] * 3,
            "cold": [Sample(8, 10), Sample(7, 9), Sample(9, 11)],
            "warm": [Sample(2, 3), Sample(4, 3.5), Sample(1, 2.5)],
            "local-cold": [Sample(4, 5), Sample(5, 4), Sample(4, 6)],
            "local": [Sample(1.5, 2), Sample(1.6, 1.8), Sample(2, 2.2)],
        },
        first_rounds=[5, 6, 7],
        warm_cpu_seconds=[{DRIVER: 0.5, JVM: 1, WORKERS: 1.5}] * 3,
        warm_phases=[{"scan": 1, "swap": 0.5}, {"scan": 2, "swap": 0.5}, {"scan": 3, "swap": 0.5}],
        memory={"kafka": {JVM: Peak(rss_bytes=700 * MIB)}, "warm": peaks, "local": smaller},
        local_first_rounds=[2.5, 1.9, 2.1],
        local_cpu_seconds=[{DRIVER: 0.25, JVM: 0, WORKERS: 1.75}] * 3,
        local_phases=[{"scan": 0.75, "swap": 0.25}] * 3,
    )


def results(*logs: LogResult, quick: bool = False) -> Results:
    stages = {COUNT: [3.0, 2, 4], MERGE: [1.0, 1, 1], SCAN: [2.0, 2, 2], RESOLVE: [2.0, 1, 2]}
    sides = {KAFKA: 40, DRY_RUN: 9, RUN: 13, LOCAL_COLD: 4}
    return Results(
        machine={"machine": "two cores"},
        quick=quick,
        logs=logs or (log_result(),),
        plan=FleetResult(10_000, 60_000, [Sample(4, 3), Sample(6, 5), Sample(5, 4)], 250 * MIB),
        configs=FleetResult(10_000, 60_000, [Sample(0.4, 0.3)] * 3, 80 * MIB),
        explain=FleetResult(10_000, 60_000, [Sample(0.25, 0.5)] * 3, 70 * MIB),
        recovery=FleetResult(9_000, 54_000, [Sample(8, 5), Sample(7, 6), Sample(9, 7)], 90 * MIB),
        opening=FleetResult(8_000, 48_000, [Sample(3, 2), Sample(1, 1), Sample(2, 3)], 90 * MIB),
        swaps=tuple(SwapResult(n, 1, [Sample(n / 100, n / 500)] * 3) for n in (1_000, 4_000)),
        many_logs={
            side: FleetResult(2_000, 4_000, [Sample(n, n)] * 3, MIB) for side, n in sides.items()
        },
        tables={"append, none": 2.5, "read, none": 1.5},
        engine=(EngineResult("1 KB batches", "append", {KAFKA: [3, 4, 5], OURS: [2, 8, 10]}),),
        inspection=InspectionResult("100b-4gb", stages, {WORKERS: Peak(rss_bytes=200 * MIB)}),
        executors={"1": [Sample(9, 8), Sample(7, 10), Sample(8, 9)], LOCAL: [Sample(3, 6)] * 3},
        local_inspection=InspectionResult(
            "100b-4gb",
            {COUNT: [1.5, 1.5, 3], MERGE: [0.5, 1, 1], SCAN: [1, 1, 1], RESOLVE: [1, 1, 1]},
            {WORKERS: Peak(rss_bytes=150 * MIB), DRIVER: Peak(rss_bytes=100 * MIB)},
        ),
    )
