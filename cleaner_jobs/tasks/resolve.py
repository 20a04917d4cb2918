"""Resolve: merge the parts of a log, a hash partition at a time, into verdicts on its records.

Source: compaction C-7, C-11.2; the order of parts is the order of the log.
"""

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.kernels.offset_map import (
    ENTRY_BYTES,
    ENTRY_WORDS,
    collect_superseded,
    merge_latest,
    select_entries,
    table_slots,
)
from cleaner_jobs.problems import WorkFileError
from cleaner_jobs.task_values import FINGERPRINT_RANGE, Part, Verdict
from cleaner_jobs.tasks.sink import write_whole
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from storage.files.filesystem import naming, read_from

# of a part: where its ordinals start, their checksum, records dropped, their fingerprints
INDEX_WORDS = 4
INDEX_BYTES = 8 * INDEX_WORDS
MERGE_ENTRIES = 1 << 21  # merged at once: 48 MiB of entries, 32 MiB of table


class PartFile:
    """Reads blocks that scan tasks wrote, and checks them against their checksums."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY)

    def close(self) -> None:
        os.close(self._descriptor)

    def edges(self, part: Part, hash_partition: int) -> tuple[int, int, int]:
        """Where a hash partition's entries start and end, in entries, and their checksum."""
        hash_partitions = 1 << part.hash_partition_bits
        at = part.block_at + part.entries * ENTRY_BYTES
        start, end = np.frombuffer(self._read(at + 8 * hash_partition, 16), np.uint64).tolist()
        checksum_at = at + 8 * (hash_partitions + 1 + hash_partition)
        (checksum,) = np.frombuffer(self._read(checksum_at, 8), np.uint64).tolist()
        if not start <= end <= part.entries:  # their own checksum is behind them, and not read here
            raise WorkFileError(self._path, at, "entries of the map are not what was written")
        return start, end, checksum

    def entries(self, part: Part, edges: tuple[int, int, int]) -> NDArray[np.uint64]:
        """The (n, 3) entries of one hash partition of a part, by its edges."""
        start, end, checksum = edges
        at = part.block_at + start * ENTRY_BYTES
        data = self._read(at, (end - start) * ENTRY_BYTES)
        if xxhash.xxh3_64_intdigest(data) != checksum:
            raise WorkFileError(self._path, at, "entries of the map are not what was written")
        return np.frombuffer(data, np.uint64).reshape(-1, ENTRY_WORDS)

    def states(self, part: Part) -> NDArray[np.uint8]:
        """A state byte for each record of a part, free to be changed."""
        hash_partitions = 1 << part.hash_partition_bits
        at = part.block_at + part.entries * ENTRY_BYTES
        data = self._read(at, 8 * (2 * hash_partitions + 1) + part.records)
        if xxhash.xxh3_64_intdigest(data) != part.block_checksum:
            raise WorkFileError(self._path, at, "record states are not what was written")
        return np.frombuffer(bytearray(data[8 * (2 * hash_partitions + 1) :]), np.uint8)

    def _read(self, at: int, length: int) -> bytes:
        with naming(self._path):
            data = read_from(self._descriptor, at, length)
        if len(data) != length:
            raise WorkFileError(self._path, at, f"{len(data)} of {length} bytes are there")
        return data


class PartFiles:
    """The part files of a task, each opened once."""

    def __init__(self) -> None:
        self._files: dict[str, PartFile] = {}

    def of(self, part: Part) -> PartFile:
        if part.file not in self._files:
            self._files[part.file] = PartFile(part.file)
        return self._files[part.file]

    def __enter__(self) -> "PartFiles":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()


def resolve_hash_partition(
    parts: Sequence[Part],
    hash_partition: int,
    files: PartFiles,
    out: tuple[BinaryIO, str],
    buffers: WorkerBuffers,
) -> Verdict:
    """Merge one hash partition of a log and write its verdict. parts: all of the log, in order."""
    edges = [files.of(part).edges(part, hash_partition) for part in parts]
    total = sum(end - start for start, end, _ in edges)
    turns = 1 << max(0, (total - 1).bit_length() - (MERGE_ENTRIES - 1).bit_length())
    found = [_Dropped() for _ in parts]
    for turn in range(turns):
        for number, dropped in enumerate(_merge_turn(parts, edges, (turn, turns), files, buffers)):
            found[number].add(*dropped)
    return Verdict(
        log_id=parts[0].log_id,
        hash_partition=hash_partition,
        file=out[1],
        block_at=_write_verdict(found, out),
        parts=len(parts),
        superseded=sum(part.superseded for part in found),
        expired=sum(part.expired for part in found),
        dropped_fingerprints=sum(part.fingerprints for part in found) % FINGERPRINT_RANGE,
    )


class _Dropped:
    """What the turns of a hash partition have found about one part."""

    def __init__(self) -> None:
        self.ordinals: list[NDArray[np.uint32]] = []
        self.superseded = self.expired = self.fingerprints = 0

    def add(self, ordinals: NDArray[np.uint32], expired: int, fingerprints: int) -> None:
        if len(ordinals):
            self.ordinals.append(ordinals)
        self.superseded += len(ordinals)
        self.expired += expired
        self.fingerprints += fingerprints


def _merge_turn(
    parts: Sequence[Part],
    edges_in_parts: Sequence[tuple[int, int, int]],
    turn: tuple[int, int],
    files: PartFiles,
    buffers: WorkerBuffers,
) -> Iterator[tuple[NDArray[np.uint32], int, int]]:
    """Yield for each part its superseded ordinals, expired count and their fingerprints."""
    number, turns = turn
    shift = 64 - (turns.bit_length() - 1)
    edges, filled = [0], 0
    for part, of_part in zip(parts, edges_in_parts, strict=True):
        source = files.of(part).entries(part, of_part)
        entries = buffers.keep("merge", filled + len(source), filled, np.uint64, ENTRY_WORDS)
        filled = select_entries(source, entries, filled, shift, number)
        edges.append(filled)
    entries = buffers.array("merge", filled, np.uint64, ENTRY_WORDS)
    slots = table_slots(filled)
    table = buffers.array("merge table", slots, np.uint64)[:slots]
    superseded = buffers.array("merge superseded", filled)
    merge_latest(entries, filled, table, superseded)
    for part, start, end in zip(parts, edges, edges[1:], strict=False):
        ordinals = np.empty(end - start, np.uint32)
        count, expired, checksum = collect_superseded(
            entries[start:end], superseded[start:end], part.first_record_offset, ordinals
        )
        yield ordinals[:count], expired, int(checksum)


def _write_verdict(found: list[_Dropped], out: tuple[BinaryIO, str]) -> int:
    """Write a verdict block, and return where it stands."""
    file, path = out
    index = np.zeros((len(found) + 1, INDEX_WORDS), np.uint64)
    block_at, start = file.tell(), 0
    for number, part in enumerate(found):
        digest = xxhash.xxh3_64()
        for ordinals in part.ordinals:
            digest.update(ordinals.data)
        dropped = part.superseded + part.expired
        fingerprints = part.fingerprints % FINGERPRINT_RANGE
        index[number] = start, digest.intdigest(), dropped, fingerprints
        start += part.superseded
    index[len(found), 0] = start
    with naming(path):
        write_whole(file, index.data)
        for part in found:
            for ordinals in part.ordinals:
                write_whole(file, ordinals.data)
    return block_at


class DroppedFromPart(NamedTuple):
    """What one hash partition decided about one part."""

    superseded: NDArray[np.uint32]  # ordinals of the records that other parts supersede
    dropped: int  # these, and tombstones past their horizon
    dropped_fingerprints: int


class VerdictFiles:
    """Reads the verdicts of logs, a part at a time."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}

    def __enter__(self) -> "VerdictFiles":
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def on_part(self, verdict: Verdict, number: int) -> DroppedFromPart:
        """What a verdict says of part `number` of the log."""
        index_at = verdict.block_at + number * INDEX_BYTES
        start, checksum, dropped, fingerprints, end = np.frombuffer(
            self._read(verdict, index_at, INDEX_BYTES + 8), np.uint64
        ).tolist()
        if not start <= end <= verdict.superseded:
            raise WorkFileError(verdict.file, index_at, "a verdict is not what was written")
        at = verdict.block_at + (verdict.parts + 1) * INDEX_BYTES + 4 * start
        data = self._read(verdict, at, 4 * (end - start))
        if xxhash.xxh3_64_intdigest(data) != checksum:
            raise WorkFileError(verdict.file, at, "a verdict is not what was written")
        return DroppedFromPart(np.frombuffer(data, np.uint32), dropped, fingerprints)

    def _read(self, verdict: Verdict, at: int, length: int) -> bytes:
        if verdict.file not in self._descriptors:
            self._descriptors[verdict.file] = os.open(verdict.file, os.O_RDONLY)
        with naming(verdict.file):
            data = read_from(self._descriptors[verdict.file], at, length)
        if len(data) != length:
            raise WorkFileError(verdict.file, at, f"{len(data)} of {length} bytes are there")
        return data
