"""Resolve: merge the parts of a log, a hash partition at a time, into verdicts on its records.

Source: compaction C-7, C-11.2; the order of parts is the order of the log.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.kernels.offset_map import (
    ENTRY_WORDS,
    SUM_COLUMNS,
    collect_superseded,
    merge_latest,
    table_slots,
)
from cleaner_jobs.messages import ENTRY_BYTES, Part, Verdict
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.tasks.entry_files import Entries, EntryBlock, EntrySpill
from cleaner_jobs.work_file import WorkFiles, write_whole
from storage.files.descriptors import naming
from storage.formats.batch_windows import Buffers

# of a part: where its ordinals start, their checksum, records dropped, their fingerprints
INDEX_WORDS = 4
INDEX_BYTES = 8 * INDEX_WORDS
MERGE_ENTRIES = 1 << 21  # merged at once: 48 MiB of entries, 32 MiB of table


def edges_of(files: WorkFiles, part: EntryBlock, hash_partition: int) -> tuple[int, int, int]:
    """Return where a hash partition's entries start and end, in entries, and their checksum."""
    hash_partitions = 1 << part.hash_partition_bits
    at = part.block_at + part.entries * ENTRY_BYTES
    edges = files.read(part.file, at + 8 * hash_partition, 16)
    start, end = np.frombuffer(edges, np.uint64).tolist()
    checksum_at = at + 8 * (hash_partitions + 1 + hash_partition)
    (checksum,) = np.frombuffer(files.read(part.file, checksum_at, 8), np.uint64).tolist()
    if not start <= end <= part.entries:  # their own checksum is after them, and not read here
        raise WorkFileError(part.file, at, "entries of the map are not what was written")
    return start, end, checksum


def read_entries(
    files: WorkFiles, part: EntryBlock, edges: tuple[int, int, int], rows: NDArray[np.uint64]
) -> None:
    """Fill rows, (n, ENTRY_WORDS), with the entries of one hash partition, by its edges."""
    start, _, checksum = edges
    at = part.block_at + start * ENTRY_BYTES
    target = rows.view(np.uint8).reshape(-1).data
    files.fill(part.file, at, target)
    if xxhash.xxh3_64_intdigest(target) != checksum:
        raise WorkFileError(part.file, at, "entries of the map are not what was written")


def states_of(files: WorkFiles, part: Part) -> NDArray[np.uint8]:
    """Return a state byte for each record of a part, free to be changed."""
    states_at = 8 * (2 * (1 << part.hash_partition_bits) + 1)
    at = part.block_at + part.entries * ENTRY_BYTES
    data = files.read(part.file, at, states_at + part.records)
    if xxhash.xxh3_64_intdigest(data) != part.block_checksum:
        raise WorkFileError(part.file, at, "record states are not what was written")
    return np.frombuffer(data, np.uint8)[states_at:]


def resolve_hash_partition(
    parts: Sequence[Part],
    hash_partition: int,
    files: WorkFiles,
    out: tuple[BinaryIO, str],
    buffers: Buffers,
) -> Verdict:
    """Merge one hash partition of a log and write its verdict. parts: all of the log, in order."""
    found = _Dropped(parts)
    for entries in entries_of(parts, hash_partition, files, out[1], buffers):
        found.add(entries, buffers)
    superseded, expired, fingerprints = found.sums.sum(axis=0).tolist()
    return Verdict(
        log_id=parts[0].log_id,
        hash_partition=hash_partition,
        file=out[1],
        block_at=_write_verdict(found, out),
        parts=len(parts),
        superseded=superseded,
        expired=expired,
        dropped_fingerprints=fingerprints,  # uint64: modulo FINGERPRINT_RANGE
    )


def entries_of(
    parts: Sequence[EntryBlock],
    hash_partition: int,
    files: WorkFiles,
    spill_path: str,
    buffers: Buffers,
) -> Iterator[Entries]:
    """Yield the entries of one hash partition of a log; all of a key at once, in their order.

    spill_path: what the files begin with that hold what there is no room for in memory.
    """
    edges = [edges_of(files, part, hash_partition) for part in parts]
    total = sum(end - start for start, end, _ in edges)
    turns = 1 << max(0, (total - 1).bit_length() - (MERGE_ENTRIES - 1).bit_length())
    read = partial(_read_entries, parts, edges, files, buffers)
    if turns == 1:
        yield from read(max(1, total))
        return
    with EntrySpill(f"{spill_path}-{hash_partition}", turns, len(parts), files.disk) as spill:
        for entries in read(MERGE_ENTRIES):
            spill.add(entries)
        for turn in range(turns):
            yield spill.turn(turn)


def _read_entries(
    parts: Sequence[EntryBlock],
    edges: Sequence[tuple[int, int, int]],
    files: WorkFiles,
    buffers: Buffers,
    at_once: int,
) -> Iterator[Entries]:
    """Read the entries of all parts, about so many at once."""
    counts, filled = np.zeros(len(parts), np.int64), 0
    for number, (part, of_part) in enumerate(zip(parts, edges, strict=True)):
        end = filled + of_part[1] - of_part[0]
        rows = buffers.keep("merge", end, filled, np.uint64, ENTRY_WORDS)
        read_entries(files, part, of_part, rows[filled:end])
        counts[number], filled = end - filled, end
        if filled >= at_once:
            yield Entries(rows[:filled], counts)
            counts, filled = np.zeros(len(parts), np.int64), 0
    if filled:
        yield Entries(buffers.array("merge", filled, np.uint64, ENTRY_WORDS)[:filled], counts)


class _Dropped:
    """What the turns of a hash partition have found about the parts of a log."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._first_offsets = np.array([part.first_record_offset for part in parts], np.int64)
        self._ordinals = [np.empty(0, np.uint32)]
        self._parts = [np.empty(0, np.int64)]  # that the ordinals are of
        # of each part: superseded, expired, their fingerprints
        self.sums = np.zeros((len(parts), SUM_COLUMNS), np.uint64)

    def add(self, entries: Entries, buffers: Buffers) -> None:
        """Merge the entries of one turn."""
        rows, count = entries.rows, len(entries.rows)
        slots = table_slots(count)
        table = buffers.array("merge table", slots, np.uint64)[:slots]
        superseded = buffers.array("merge superseded", count)
        merge_latest(rows, count, table, superseded)
        ordinals = np.empty(count, np.uint32)
        sums = np.zeros_like(self.sums)
        edges = np.concatenate(([0], np.cumsum(entries.counts)))
        found = collect_superseded(rows, superseded, (edges, self._first_offsets), (ordinals, sums))
        self._ordinals.append(ordinals[:found])
        self._parts.append(np.repeat(np.arange(len(sums)), sums[:, 0].astype(np.int64)))
        self.sums += sums

    def ordinals(self) -> NDArray[np.uint32]:
        """Return those of one part after those of another."""
        found = np.concatenate(self._ordinals)
        if len(self._ordinals) <= 2:  # of one turn: they are in order
            return found
        return found[np.argsort(np.concatenate(self._parts), kind="stable")]


def _write_verdict(found: _Dropped, out: tuple[BinaryIO, str]) -> int:
    """Write a verdict block, and return where it stands."""
    file, path = out
    block_at, ordinals = file.tell(), found.ordinals()
    index = np.zeros((len(found.sums) + 1, INDEX_WORDS), np.uint64)
    starts = np.concatenate(([0], np.cumsum(found.sums[:, 0].astype(np.int64))))
    index[:, 0] = starts
    index[:-1, 1] = [
        xxhash.xxh3_64_intdigest(ordinals[start:end].data)
        for start, end in pairwise(starts.tolist())
    ]
    index[:-1, 2] = found.sums[:, 0] + found.sums[:, 1]
    index[:-1, 3] = found.sums[:, 2]
    with naming(path):
        write_whole(file, index.data)
        write_whole(file, ordinals.data)
    return block_at


class DroppedFromPart(NamedTuple):
    """What one hash partition decided about one part."""

    superseded: NDArray[np.uint32]  # ordinals of the records that other parts supersede
    dropped: int  # these, and tombstones past their horizon
    dropped_fingerprints: int


def dropped_from(files: WorkFiles, verdict: Verdict, number: int) -> DroppedFromPart:
    """Return what a verdict says of part `number` of the log."""
    index_at = verdict.block_at + number * INDEX_BYTES
    index = files.read(verdict.file, index_at, INDEX_BYTES + 8)
    start, checksum, dropped, fingerprints, end = np.frombuffer(index, np.uint64).tolist()
    if not start <= end <= verdict.superseded:
        raise WorkFileError(verdict.file, index_at, "a verdict is not what was written")
    at = verdict.block_at + (verdict.parts + 1) * INDEX_BYTES + 4 * start
    data = files.read(verdict.file, at, 4 * (end - start))
    if xxhash.xxh3_64_intdigest(data) != checksum:
        raise WorkFileError(verdict.file, at, "a verdict is not what was written")
    ordinals = np.frombuffer(data, np.uint32)
    ordinals.flags.writeable = False  # the kernel is compiled for what is only read
    return DroppedFromPart(ordinals, dropped, fingerprints)
