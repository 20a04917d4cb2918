"""Rounds that nobody has measured: their sizes, and what the dealing of work makes of them."""

from typing import NamedTuple

from cleaner_jobs.messages import Stretch
from compactor.planning import layout
from tests.bench import scale
from tests.bench.scale import GB, RECORD_BYTES, SEGMENT_BYTES
from tests.scaling.model import Size

MANY_LOGS, LOG_BYTES = 10_000, 100_000_000
FIVE_G = 5 * 10**9


class Case(NamedTuple):
    name: str
    size: Size


def _of_one(log_bytes: int, keys: int) -> Size:
    return Size(log_bytes, log_bytes // RECORD_BYTES, keys, -(-log_bytes // SEGMENT_BYTES))


CASES = (
    Case("1 TB in one partition", _of_one(1000 * GB, 10**9)),
    Case(
        "10,000 partitions of 100 MB",
        Size(
            MANY_LOGS * LOG_BYTES,
            MANY_LOGS * LOG_BYTES // RECORD_BYTES,
            MANY_LOGS * 100_000,
            MANY_LOGS,
            MANY_LOGS,
        ),
    ),
    Case("5 G keys, each once", _of_one(FIVE_G * RECORD_BYTES, FIVE_G)),
)


def counts_of(case: Case) -> dict[str, int]:
    """By what is counted, on 16 cores. Of one log those of `tests.bench.scale`."""
    if case.size.logs == 1:
        return {f"{c.step}: {c.what}": c.number for c in scale.simulate(case.size.log_bytes)}
    return _of_many_logs(case.size)


def _of_many_logs(size: Size) -> dict[str, int]:
    """Each log is one part and one piece, so the rows are as many as the logs."""
    plans = [scale.plan_of(LOG_BYTES, log_id) for log_id in range(size.logs)]
    length = layout.stretch_bytes(size.log_bytes, scale.CORES)
    stretches = [
        stretch
        for plan in plans
        for stretch in layout.stretches_of(plan, lambda _: scale.INDEX, length=length)
    ]
    scans = layout.scan_tasks(stretches, scale.CORES)
    parts = [
        [part._replace(log_id=plan.log_id) for part in scale.parts_of(plan.log_id, own)]
        for plan, own in zip(plans, _by_log(stretches, size.logs), strict=True)
    ]
    flat = [part for of_log in parts for part in of_log]
    share = layout.share_bytes(size.log_bytes, scale.CORES)
    pieces = [
        piece
        for plan, of_log in zip(plans, parts, strict=True)
        for piece in layout.pieces_of(plan, of_log, share)
    ]
    groups = sum(len(plan.groups) for plan in plans)
    return {
        "scan: tasks": len(scans),
        "scan: stretches": len(stretches),
        "scan: rows to the driver: parts": len(flat),
        "scan: bytes to the driver": scale.json_bytes(flat),
        "resolve: tasks": len(layout.resolve_tasks(parts, scale.CORES)),
        "rewrite: tasks": len(layout.rewrite_tasks(pieces, scale.CORES)),
        "rewrite: rows to the driver: pieces": len(pieces),
        "swap: groups": groups,
        "swap: renames": groups * scale.FILES_A_SEGMENT * scale.RENAMES_A_FILE,
        "swap: syncs of the directory": groups * scale.SYNCS_A_GROUP,
    }


def _by_log(stretches: list[Stretch], logs: int) -> list[list[Stretch]]:
    found: list[list[Stretch]] = [[] for _ in range(logs)]
    for stretch in stretches:
        found[stretch.log_id].append(stretch)
    return found
