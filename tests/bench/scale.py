"""python -m tests.bench.scale: what a round over very long logs comes to, step by step.

Nothing is read or written: the parts of such logs are made up after a measured one, and go through
the very functions that cut and deal the work of a round. What is counted are tasks, rows, reads and
bytes of each step; of the driver's memory, what it takes for the values of a round.
"""

import json
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cleaner_jobs.messages import (
    LogPlan,
    Part,
    PartSection,
    Piece,
    Rewritten,
    SegmentGroup,
    Stretch,
    Verdict,
)
from cleaner_jobs.tasks.resolve import MERGE_ENTRIES
from cleaner_jobs.tasks.scan import PART_RECORDS
from cleaner_jobs.tasks.segment_facts import BATCH_FACTS
from compactor.planning import layout
from storage.file_names import Segment
from tests.bench.table import markdown
from tests.support.made_values import part, rewritten

GB, MIB = 10**9, 1 << 20
SIZES = 100 * GB, 1000 * GB
CORES = 16
SEGMENT_BYTES = 1 << 30  # segment.bytes, by default
INDEX_STEP_BYTES = MIB  # between the index entries that a stretch may be cut at

# Measured in `100b-none`: records of 121 bytes in batches of 110. With a thousand million keys
# hardly one comes twice in a part, so each record has an entry.
RECORD_BYTES, BATCH_BYTES = 121, 13_300
KEPT = 0.5  # of the batches, in some form
RENAMES_A_FILE, SYNCS_A_GROUP, FILES_A_SEGMENT = 3, 5, 3  # to .cleaned, .swap, its name
LARGE = 2**63 - 1  # as long in JSON as a checksum


class Count(NamedTuple):
    """One number of a step."""

    step: str
    what: str
    number: int


def main() -> None:
    found = [[*simulate(log_bytes), memory(log_bytes)] for log_bytes in SIZES]
    sys.stdout.write(f"{table(found)}\n")


def table(found: Sequence[Sequence[Count]]) -> str:
    """Return the counts of a round over each size, and how the last is to the first."""
    head = ["step", "what", *(f"{size // GB:,} GB" for size in SIZES), "factor"]
    rows = []
    for counts in zip(*found, strict=True):
        numbers = [count.number for count in counts]
        factor = f"{numbers[-1] / numbers[0]:.1f}" if numbers[0] else "–"
        rows.append([counts[0].step, counts[0].what, *(f"{n:,}" for n in numbers), factor])
    return markdown(head, rows)


def simulate(log_bytes: int, cores: int = CORES, logs: int = 1) -> Iterator[Count]:
    """Yield the counts of a round over so many logs, of that size all together.

    Where there are many, hash partitions and what is read of them are not counted.
    """
    plans = [_plan(log_bytes // logs, log_id) for log_id in range(logs)]
    length = layout.stretch_bytes(log_bytes, cores)
    stretches = [
        stretch
        for plan in plans
        for stretch in layout.stretches_of(plan, lambda _: INDEX, length=length)
    ]
    scans = layout.scan_tasks(stretches, cores)
    parts = [part for number, task in enumerate(scans) for part in _parts(number, task)]
    by_log: list[list[Part]] = [[] for _ in plans]
    for own in parts:
        by_log[own.log_id].append(own)
    yield Count("scan", "tasks", len(scans))
    yield Count("scan", "stretches", len(stretches))
    yield Count("scan", "rows to the driver: parts", len(parts))
    yield Count("scan", "bytes to the driver", _json_bytes(parts))
    resolves = len(layout.resolve_tasks(by_log, cores))
    yield Count("resolve", "tasks", resolves)
    share = layout.share_bytes(log_bytes, cores)
    pieces = [
        piece
        for plan, own in zip(plans, by_log, strict=True)
        for piece in layout.pieces_of(plan, own, share)
    ]
    verdicts: list[Verdict] = []
    if logs == 1:
        hash_partitions = 1 << parts[0].hash_partition_bits
        verdicts = [_verdict(number, len(parts)) for number in range(hash_partitions)]
        yield from _of_resolve(parts, verdicts, resolves)
    rewrites = len(layout.rewrite_tasks(pieces, cores))
    yield Count("rewrite", "tasks", rewrites)
    yield Count("rewrite", "rows to the driver: pieces", len(pieces))
    if logs == 1:
        yield from _of_rewrite(pieces, verdicts, rewrites)
    groups = sum(len(plan.groups) for plan in plans)
    yield Count("swap", "groups", groups)
    yield Count("swap", "renames", groups * FILES_A_SEGMENT * RENAMES_A_FILE)
    yield Count("swap", "syncs of the directory", groups * SYNCS_A_GROUP)


def _of_resolve(parts: Sequence[Part], verdicts: Sequence[Verdict], tasks: int) -> Iterator[Count]:
    keys = sum(own.entries for own in parts) // len(verdicts)
    yield Count("resolve", "bytes to tasks", tasks * _json_bytes(parts))
    reads = len(parts) * len(verdicts)
    yield Count("resolve", "reads: of each part for each hash partition", reads)
    yield Count("resolve", "bytes a read", 24 * parts[0].entries // len(verdicts))
    yield Count("resolve", "keys a hash partition", keys)
    yield Count("resolve", "turns a hash partition", _turns(keys))
    yield Count("resolve", "rows to the driver: verdicts", len(verdicts))
    yield Count("resolve", "bytes to the driver", _json_bytes(verdicts))


def _of_rewrite(
    pieces: Sequence[Piece], verdicts: Sequence[Verdict], tasks: int
) -> Iterator[Count]:
    rows = [_rewritten(piece) for piece in pieces]
    to_tasks = _json_bytes(pieces) + tasks * _json_bytes(verdicts)
    yield Count("rewrite", "bytes to tasks", to_tasks)
    reads = sum(len(piece.parts) for piece in pieces) * len(verdicts)
    yield Count("rewrite", "reads: of each verdict for each part", reads)
    yield Count("rewrite", "bytes to the driver, early and at the end", 2 * _json_bytes(rows))
    joined = sum(part.batches for piece in pieces if piece.of > 1 for part in piece.parts)
    facts = int(joined * KEPT) * BATCH_FACTS.itemsize
    yield Count("rewrite", "bytes of facts that the driver reads", facts)


def memory(log_bytes: int) -> Count:
    """Return what the driver's values of such a round take at most."""
    tracemalloc.start()
    try:
        counts = list(simulate(log_bytes))
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counts
    return Count("driver", "bytes of memory for all of it", held)


INDEX = range(INDEX_STEP_BYTES, SEGMENT_BYTES, INDEX_STEP_BYTES)


def _plan(log_bytes: int, log_id: int) -> LogPlan:
    count = -(-log_bytes // SEGMENT_BYTES)
    sizes = [SEGMENT_BYTES] * (count - 1) + [log_bytes - (count - 1) * SEGMENT_BYTES]
    offsets = SEGMENT_BYTES // RECORD_BYTES
    groups = tuple(
        SegmentGroup((Segment(number * offsets, size, 0, 0, None, LARGE, LARGE, LARGE, 3),))
        for number, size in enumerate(sizes)
    )
    return LogPlan(log_id, "/logs", "t", 0, "/logs/t-0", 0, LARGE, groups, 1, 4096, 10 << 20, ())


def _parts(task: int, stretches: Sequence[Stretch]) -> Iterator[Part]:
    """Yield those of one scan task.

    A part ends with its group, after so many records, or where a stretch ends it.
    """
    log_bytes = 0
    for number, stretch in enumerate(stretches):
        log_bytes += stretch.end - stretch.start
        while log_bytes >= PART_RECORDS * RECORD_BYTES:
            yield _part(task, stretch, PART_RECORDS * RECORD_BYTES)
            log_bytes -= PART_RECORDS * RECORD_BYTES
        following = stretches[number + 1 : number + 2]
        is_last = not following or following[0][:2] != stretch[:2]  # log, group
        if log_bytes and (is_last or stretch.ends_part):
            yield _part(task, stretch, log_bytes)
            log_bytes = 0


def _part(task: int, stretch: Stretch, log_bytes: int) -> Part:
    records = log_bytes // RECORD_BYTES
    return part(
        log_id=stretch.log_id,
        group=stretch.group,
        file=f"/disk/compactor-0a1b2c3d/parts/scan-{task}-{task}.parts",
        block_at=LARGE,
        block_checksum=LARGE,
        entries=records,
        survivors=records,
        hash_partition_bits=stretch.hash_partition_bits,
        first_record_offset=LARGE,
        log_bytes=log_bytes,
        batches=log_bytes // BATCH_BYTES,
        records=records,
        txn_checksum=LARGE,
        survivor_fingerprints=LARGE,
        sections=(PartSection(0, stretch.start, stretch.end, 0, LARGE, LARGE, LARGE),),
    )


def _verdict(number: int, parts: int) -> Verdict:
    return Verdict(
        log_id=0,
        hash_partition=number,
        file="/disk/compactor-0a1b2c3d/verdicts/resolve-10-100.verdicts",
        block_at=LARGE,
        parts=parts,
        superseded=PART_RECORDS,
        expired=PART_RECORDS,
        dropped_fingerprints=LARGE,
    )


def _rewritten(piece: Piece) -> Rewritten:
    staged = "/logs/t-0/00000000000000000000.log.compactor-0a1b2c3d-rewrite-100-1000"
    return rewritten(
        group=piece.group,
        number=piece.number,
        log_file=staged,
        index_file=staged,
        time_index_file=staged,
        facts_file=staged if piece.of > 1 else "",
        log_checksum=LARGE,
        kept_fingerprints=LARGE,
        dropped_fingerprints=LARGE,
        index_checksums=(LARGE, LARGE),
        facts_checksum=LARGE,
    )


def _turns(keys: int) -> int:
    return 1 << max(0, (keys - 1).bit_length() - (MERGE_ENTRIES - 1).bit_length())


def _json_bytes(values: Sequence[object]) -> int:
    return sum(len(json.dumps(value)) for value in values)


if __name__ == "__main__":
    main()
