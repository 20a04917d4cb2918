"""Cut and deal the work of a round: stretches to scan tasks, pieces to rewrite tasks. Pure.

Few long tasks: a Spark task costs a tenth of a second beyond its work.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import Protocol, TypeVar

from cleaner_jobs.messages import LogPlan, Part, Piece, Source, Stretch, Verdict
from storage.gc_pause import collector_paused

STRETCH_BYTES = 64 << 20  # at most
SHORTEST_STRETCH_BYTES = 4 << 20  # of a small log that many cores share
TASK_BYTES = 512 << 20
TASKS_PER_CORE = 4
PIECES_PER_TASK = 4  # of a group that several tasks share
REWRITE_TASKS_PER_CORE = 32  # what is being rewritten is staged beside what it replaces
WRITE_COST = 5  # of a byte that stays: to be put together, checked, written and read back
SHARE_STEPS = 20  # of halving, to find a number between 0 and 1
LOG_COST_BYTES = 256 << 10  # what opening and closing a log costs, as bytes of reading
BYTES_PER_KEY = 100  # an estimate; it decides only into how many parts the map is cut
HASH_PARTITION_KEYS = 1 << 18  # merged in the processor's cache
# Each is read from each part: with more of them, what a part has for one would be less than 2,000
# keys, and the reads would grow as the square of the log. One that has more keys than a merge holds
# in memory is shared out over files first.
MAX_HASH_PARTITION_BITS = 9
SMALLEST_SHARE_BYTES = 8 << 20
NS_PER_MS = 1_000_000

Dealt = TypeVar("Dealt")


class InHashPartitions(Protocol):
    """What a scan leaves of some of a log, with its keys by hash partition."""

    @property
    def log_id(self) -> int: ...
    @property
    def log_bytes(self) -> int: ...
    @property
    def hash_partition_bits(self) -> int: ...


IndexPositions = Callable[[str], Sequence[int]]  # path of a .log: its index entries' positions


def task_count(log_bytes: int, cores: int) -> int:
    """As many as cores; up to four times that where each still has TASK_BYTES to do."""
    rounds = -(-log_bytes // (cores * TASK_BYTES))
    return cores * max(1, min(TASKS_PER_CORE, rounds))


def share_bytes(log_bytes: int, cores: int) -> int:
    """A task's share of a round, by which groups are cut into pieces.

    What is small stays whole: to put pieces together takes the driver longer than to write them.
    """
    return max(SMALLEST_SHARE_BYTES, log_bytes // task_count(log_bytes, cores))


def in_flight_bytes(log_bytes: int, cores: int) -> int:
    """How much of a round's logs may be rewritten and not yet swapped in.

    What the tasks at work have in hand, and as much that waits for the swap of a group before it.
    """
    tasks = min(-(-log_bytes // TASK_BYTES), cores * REWRITE_TASKS_PER_CORE)
    return log_bytes if tasks <= cores else min(log_bytes, 2 * cores * -(-log_bytes // tasks))


def hash_partition_bits(log_bytes: int) -> int:
    """How many bits of a key's hash name its hash partition, for a log of that size."""
    hash_partitions = log_bytes // BYTES_PER_KEY // HASH_PARTITION_KEYS
    return min(MAX_HASH_PARTITION_BITS, hash_partitions.bit_length())


def stretch_bytes(log_bytes: int, cores: int) -> int:
    """How long the stretches of a round's logs are: several for each core."""
    share = log_bytes // (cores * TASKS_PER_CORE)
    return min(STRETCH_BYTES, max(SHORTEST_STRETCH_BYTES, share))


@collector_paused()  # they stay, and have no cycles
def sources_of(plan: LogPlan) -> list[tuple[Source, ...]]:
    """The `.log` files of each group."""
    return [plan.sources_of(group) for group in range(len(plan.groups))]


def stretches_of(
    plan: LogPlan,
    index_positions: IndexPositions,
    aborted_file: str = "",
    length: int = STRETCH_BYTES,
) -> list[Stretch]:
    """All of the groups of a log, cut where the offset index knows that a batch starts.

    aborted_file: the aborted transactions that the scan goes by. length: stretch_bytes.
    """
    bits = hash_partition_bits(plan.log_bytes)
    return [
        Stretch(
            log_id=plan.log_id,
            group=g,
            segment=s,
            start=start,
            end=end,
            source=source,
            first_dirty_offset=plan.first_dirty_offset,
            map_end_offset=plan.end_offset,
            hash_partition_bits=bits,
            aborted_file=aborted_file,
            legacy_expired=source.log_mtime_ns // NS_PER_MS <= plan.legacy_horizon_ms,
            max_record_bytes=plan.max_record_bytes,
        )
        for g, sources in enumerate(sources_of(plan))
        for s, source in enumerate(sources)
        for start, end in pairwise(_cuts(source, index_positions, length))
    ]


def dirty_stretches(plan: LogPlan, start: tuple[int, int], aborted_file: str = "") -> list[Stretch]:
    """The dirty range, a stretch for each segment. start: number of the segment, position."""
    first, position = start
    numbered = [
        (g, s, source) for g, of in enumerate(sources_of(plan)) for s, source in enumerate(of)
    ]
    return [
        Stretch(
            log_id=plan.log_id,
            group=g,
            segment=s,
            start=0 if number else position,
            end=source.log_bytes,
            source=source,
            first_dirty_offset=plan.first_dirty_offset,
            map_end_offset=plan.first_uncleanable_offset,
            hash_partition_bits=0,
            aborted_file=aborted_file,
        )
        for number, (g, s, source) in enumerate(numbered[first:])
    ]


def scan_tasks(stretches: Sequence[Stretch], cores: int) -> list[list[Stretch]]:
    """Deal stretches in order, and end parts so that all cores get pieces to rewrite."""
    costs = [stretch.end - stretch.start + LOG_COST_BYTES for stretch in stretches]
    part_bytes = max(SHORTEST_STRETCH_BYTES, sum(costs) // (cores * PIECES_PER_TASK))
    dealt = deal_in_order(stretches, costs, task_count(sum(costs), cores))
    return [list(_with_ends(run, part_bytes)) for run in dealt]


def resolve_tasks(
    parts: Iterable[Sequence[InHashPartitions]], cores: int
) -> list[list[tuple[int, int]]]:
    """(log id, hash partition) for each task. parts: of each log."""
    pairs: list[tuple[int, int]] = []
    costs: list[int] = []
    for of_log in parts:
        hash_partitions = 1 << of_log[0].hash_partition_bits
        share = sum(part.log_bytes for part in of_log) // hash_partitions
        pairs += [(of_log[0].log_id, number) for number in range(hash_partitions)]
        costs += [share + LOG_COST_BYTES // 4] * hash_partitions
    return deal_in_order(pairs, costs, task_count(sum(costs), cores))


def pieces_of(plan: LogPlan, parts: Sequence[Part], piece_bytes: int) -> list[Piece]:
    """The groups of a log, those much larger than piece_bytes cut between parts.

    piece_bytes: a task's share of the round. parts: all of the log, in its order. A group without a
    batch is one piece without parts.
    """
    pieces = []
    of_group: list[list[tuple[int, Part]]] = [[] for _ in plan.groups]
    for i, part in enumerate(parts):
        of_group[part.group].append((i, part))
    for number, (own, sources) in enumerate(zip(of_group, sources_of(plan), strict=True)):
        log_bytes = sum(part.log_bytes for _, part in own)
        count = round(log_bytes / max(1, piece_bytes))
        if count > 1:  # it is cut anyway: into more, so that each task gets some of every age
            count *= PIECES_PER_TASK
        count = max(1, min(len(own), count))
        runs = deal_in_order(own, [part.log_bytes for _, part in own], count) or [[]]
        for i, run in enumerate(runs):
            needed = _segments_of(run) if len(runs) > 1 else range(len(sources))
            pieces.append(
                Piece(
                    log_id=plan.log_id,
                    group=number,
                    number=i,
                    of=len(runs),
                    parts=tuple(part for _, part in run),
                    first_part=run[0][0] if run else 0,
                    sources=sources[needed.start : needed.stop],
                    first_source=needed.start,
                )
            )
    return pieces


def rewrite_tasks(
    pieces: Sequence[Piece],
    cores: int,
    verdicts: Mapping[int, Sequence[Verdict]] = MappingProxyType({}),
) -> list[list[Piece]]:
    """Deal pieces to tasks, so that groups are finished about in their order.

    They are swapped in that order, and a group that waits for its turn takes space on the disk.
    As many tasks as cores share the pieces, each in order. Where that is too much for
    one task each, tasks follow one another through the logs. verdicts: by log id.
    """
    costs = [_rewrite_cost(piece) for piece in pieces]
    tasks = -(-sum(costs) // TASK_BYTES)
    if tasks > cores:
        return deal_in_order(pieces, costs, min(tasks, cores * REWRITE_TASKS_PER_CORE))
    kept_bytes = (
        stays
        for log_id, own in groupby(pieces, key=lambda piece: piece.log_id)
        for stays in _kept_bytes(list(own), verdicts.get(log_id, ()))
    )
    costs = [cost + WRITE_COST * stays for cost, stays in zip(costs, kept_bytes, strict=True)]
    return deal_by_cost(pieces, costs, cores)


def deal_in_order(items: Sequence[Dealt], costs: Sequence[int], tasks: int) -> list[list[Dealt]]:
    """Cut items into at most so many runs of about equal cost; neighbours stay together."""
    dealt: list[list[Dealt]] = [[] for _ in range(tasks)]
    total, spent = sum(costs), 0
    for item, cost in zip(items, costs, strict=True):
        middle = spent + cost // 2
        dealt[min(tasks - 1, middle * tasks // max(1, total))].append(item)
        spent += cost
    return [run for run in dealt if run]


def deal_by_cost(items: Sequence[Dealt], costs: Sequence[int], tasks: int) -> list[list[Dealt]]:
    """Deal each item, the costliest first, to the task that has least; runs keep their order."""
    loads = [0] * tasks
    dealt: list[list[int]] = [[] for _ in range(tasks)]
    for i in sorted(range(len(items)), key=lambda i: -costs[i]):
        task = loads.index(min(loads))
        loads[task] += costs[i]
        dealt[task].append(i)
    return [[items[i] for i in sorted(run)] for run in dealt if run]


def _cuts(source: Source, index_positions: IndexPositions, length: int) -> list[int]:
    if not source.log_bytes:
        return []
    cuts = [0]
    if source.log_bytes > length:
        for position in index_positions(source.path):
            if cuts[-1] + length <= position < source.log_bytes:
                cuts.append(position)
    return [*cuts, source.log_bytes]


def _with_ends(run: Sequence[Stretch], part_bytes: int) -> Iterator[Stretch]:
    log_id, log_bytes = -1, 0
    for stretch in run:
        if stretch.log_id != log_id:
            log_id, log_bytes = stretch.log_id, 0
        log_bytes += stretch.end - stretch.start
        if log_bytes < part_bytes:
            yield stretch
            continue
        log_bytes = 0
        yield stretch._replace(ends_part=True)


def _segments_of(run: Sequence[tuple[int, Part]]) -> range:
    """The segments of their group that parts are of, and those between."""
    numbers = [section.segment for _, part in run for section in part.sections]
    return range(min(numbers, default=0), max(numbers, default=-1) + 1)


def _rewrite_cost(piece: Piece) -> int:
    return sum(part.log_bytes for part in piece.parts) + LOG_COST_BYTES


def _kept_bytes(pieces: Sequence[Piece], verdicts: Sequence[Verdict]) -> list[int]:
    """About how much of each piece of a log stays.

    The later in its log a piece stands, the more: each stretch of log takes the same share of what
    the pieces before it would have left. The last piece loses nothing to others.
    """
    log_bytes = [sum(part.log_bytes for part in piece.parts) for piece in pieces]
    records = [sum(part.records for part in piece.parts) for piece in pieces]
    survivors = [sum(part.survivors for part in piece.parts) for piece in pieces]
    total = max(1, sum(log_bytes))
    behind = [1 - end / total for end in accumulate(log_bytes)]
    dropped = sum(verdict.superseded + verdict.expired for verdict in verdicts)
    stay = max(0, sum(survivors) - dropped)

    def left(share: float) -> list[float]:
        return [count * share**age for count, age in zip(survivors, behind, strict=True)]

    low, high = 0.0, 1.0  # share: what all of the log would leave of a piece before it
    for _ in range(SHARE_STEPS if len(pieces) > 1 else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(left(middle)) < stay else (low, middle)
    found = left(high)
    scale = stay / max(1.0, sum(found))
    return [
        int(size * count * scale / max(1, of))
        for size, count, of in zip(log_bytes, found, records, strict=True)
    ]
