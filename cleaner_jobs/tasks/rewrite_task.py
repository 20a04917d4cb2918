"""Rewrites one piece of a segment group: from its verdicts to files that are staged and checked.

It reads the sections of the piece's parts once more, gives their batches to a `BatchRewriter`,
reads the result back, and makes the indexes of what was read.
"""

import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from cleaner_jobs.kernels.kept_batches import KeptBatches, delete_horizon
from cleaner_jobs.kernels.offset_map import drop_superseded
from cleaner_jobs.kernels.scan_runs import NO_MORE
from cleaner_jobs.kernels.transaction_kernels import flag_discardable
from cleaner_jobs.messages import (
    FINGERPRINT_RANGE,
    LogRules,
    PartSection,
    Piece,
    Rewritten,
    RoundSettings,
    Source,
)
from cleaner_jobs.problems import FAULT, MiswrittenError, WorkFileError
from cleaner_jobs.staging import staged_suffix
from cleaner_jobs.tasks.batch_rewriter import BatchRewriter, CleaningRules, OutputCounts
from cleaner_jobs.tasks.cleaned_segment import WrittenLogFile, batch_facts, read_back
from cleaner_jobs.tasks.resolve import dropped_from, states_of
from cleaner_jobs.tasks.rewrite_check import heads_of
from cleaner_jobs.tasks.segment_facts import (
    BatchFacts,
    FactsFile,
    FinishedIndexes,
    IndexesInMaking,
    finish_like,
    write_like,
)
from cleaner_jobs.tasks.window_reader import (
    PlainSource,
    RecordColumns,
    WindowReader,
    contradictory_read_error,
)
from cleaner_jobs.txn_batches import load_array
from cleaner_jobs.work_file import WorkFiles, read_checked
from storage.codecs.compression import installed_builds
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.files.descriptors import naming
from storage.files.files import Disk, FileAttributes, Files, size_of
from storage.formats import segment_indexes
from storage.formats.batch_columns import (
    BATCH_COLUMNS,
    LAST_OFFSET,
    OK,
    POSITION,
    RECORDS_COUNT,
    Int64Array,
    problem_text,
    walk_batches,
)
from storage.formats.batch_windows import Buffers, Window, next_place

NO_OFFSETS: Int64Array = np.zeros(0, np.int64)  # of control batches


class PieceContext(NamedTuple):
    """What a task works with, for all its pieces."""

    settings: RoundSettings
    attempt: str  # goes into every name that the task writes
    files: WorkFiles  # of scan and resolve tasks
    buffers: Buffers

    @property
    def disk(self) -> Disk:
        """Return the disk that logs and work files are on."""
        return self.files.disk


def rewrite_sections(
    piece: Piece, log: LogRules, context: PieceContext, rewriter: BatchRewriter
) -> None:
    """Give a rewriter all batches of a piece, and the states that the verdicts make of the scan's.

    Raise CorruptFileError, LogChangedError or OSError.
    """
    discardable = NO_OFFSETS
    if piece.discardable_file:
        discardable = load_array(piece.discardable_file, context.disk)
    for number, part in enumerate(piece.parts, piece.first_part):
        states = states_of(context.files, part)
        for verdict in log.verdicts:
            on_part = dropped_from(context.files, verdict, number)
            if not drop_superseded(states, on_part.superseded):
                problem = "a verdict names records that its part does not have"
                raise WorkFileError(verdict.file, verdict.block_at, problem)
            rewriter.counts.dropped += on_part.dropped
            rewriter.counts.dropped_fingerprints += on_part.dropped_fingerprints
        for section in part.sections:
            source = piece.sources[section.segment - piece.first_source]
            of_section = _OfSection(source, section, states)
            _rewrite_section(of_section, discardable, context, rewriter)


class _OfSection(NamedTuple):
    """A section of a part, and the states of all records of the part."""

    source: Source
    section: PartSection
    states: NDArray[np.uint8]


def _rewrite_section(
    of_section: _OfSection,
    discardable: Int64Array,
    context: PieceContext,
    rewriter: BatchRewriter,
) -> None:
    source, section, states = of_section
    ordinal, heads, may_be_plain = section.first_ordinal, 0, True
    with _opened(source, context) as reader:
        reader.check_planned(source)
        plain = PlainSource.of(reader, section.end, context.buffers)
        at = reader.start(section.start)
        while at.position < section.end:
            left = None
            if may_be_plain and 0 <= ordinal <= len(states):
                run = rewriter.rewrite_plain(plain, at, states[ordinal:], discardable)
                if len(run.rows):
                    at = plain.read_up_to(next_place(run.rows[-1]), at)
                    heads += run.heads
                    ordinal += int(run.rows[:, RECORDS_COUNT].sum())
                if run.why_ended == NO_MORE:
                    continue
                left = run.left
            window = left or reader.window(at, section.end)
            count = int(window.rows[:, RECORDS_COUNT].sum())
            # kernels would read beyond the states
            if not 0 <= ordinal <= len(states) - count:
                problem = "the batches from here on claim more records than were scanned"
                position = int(window.rows[0, POSITION])
                raise CorruptFileError(source.path, position, problem)
            flag_discardable(window.rows, discardable)
            rewriter.rewrite(window, states[ordinal : ordinal + count])
            if left is not None:
                raise contradictory_read_error(left, at)
            heads += heads_of(window.buffer, 0, len(window.batches()))[0]
            ordinal += count
            may_be_plain = window.ends_plain()
            at = window.next_place()
        reader.check_unchanged(source)
    if heads % FINGERPRINT_RANGE != section.heads:
        problem = f"the batches from here to byte {section.end} are not those that were "
        problem += f"scanned, though the file is the same; {FAULT}"
        raise MiswrittenError(source.path, section.start, problem)


def _opened(source: Source, context: PieceContext) -> WindowReader:
    return WindowReader(source.path, source.base_offset, context.buffers, context.disk)


def rewrite_piece(piece: Piece, log: LogRules, context: PieceContext) -> Rewritten:
    """Write what becomes of a piece, and check it; in a dry run only measure it.

    Raise CorruptFileError, UnsupportedFormatError, LogChangedError or OSError, and leave nothing.
    """
    if _loses_nothing(piece, log, context):
        stays = _left_in_place(piece, log, context)
        if stays is not None:
            return stays
    if context.settings.dry_run:
        return _measure(piece, log, context)
    if piece.of > 1:
        return _write_part_of_group(piece, log, context)
    return _write_group(piece, log, context)


def _loses_nothing(piece: Piece, log: LogRules, context: PieceContext) -> bool:
    """Return whether the group is one segment whose every batch would be copied."""
    if piece.of > 1 or len(piece.sources) > 1:
        return False
    if any(
        part.superseded
        or part.null_keys
        or part.expired
        or part.tombstones_without_horizon
        or part.empty_batches
        or part.aborted
        or part.legacy_batches
        for part in piece.parts
    ):
        return False
    if piece.changes_markers:
        return False
    return not any(
        dropped_from(context.files, verdict, piece.first_part + i).dropped
        for i in range(len(piece.parts))
        for verdict in log.verdicts
    )


def _left_in_place(piece: Piece, log: LogRules, context: PieceContext) -> Rewritten | None:
    """Return the result for a segment whose indexes, too, would not change, or else None."""
    source = piece.sources[0]
    making, batches = _indexes_in_making(piece, log), 0
    with _opened(source, context) as reader:
        reader.check_planned(source)
        for window in reader.windows(0, source.log_bytes):
            making.add(batch_facts(window))
            batches += len(window.rows)
        reader.check_unchanged(source)
    indexes = making.finish()
    txn_index = _new_txn_index(piece, context.disk)
    if not _has_indexes(context.disk, source.path, indexes, txn_index):
        return None
    return Rewritten(
        log_id=piece.log_id,
        group=piece.group,
        number=piece.number,
        left_in_place=True,
        log_bytes=source.log_bytes,
        records_kept=sum(part.survivors for part in piece.parts),
        control_records_kept=sum(part.control_records for part in piece.parts),
        kept_fingerprints=sum(p.survivor_fingerprints for p in piece.parts) % FINGERPRINT_RANGE,
        batches_kept=batches,
        sparse_indexes=indexes.sparse,
    )


def _has_indexes(
    files: Files, log_file: str, indexes: FinishedIndexes, txn_index: bytes | None
) -> bool:
    """Return whether the index files beside a segment hold these bytes."""
    stem = log_file.removesuffix(LOG)
    return (
        _content(files, stem + INDEX) == indexes.offset_index
        and _content(files, stem + TIME_INDEX) == indexes.time_index
        and _content(files, stem + TXN_INDEX) == txn_index
    )


def _new_txn_index(piece: Piece, files: Files) -> bytes | None:
    return read_checked(piece.txn_index_file, files) if piece.txn_index_file else None


def _content(files: Files, path: str) -> bytes | None:
    try:
        return files.read_bytes(path)
    except FileNotFoundError:
        return None


def _indexes_in_making(piece: Piece, log: LogRules) -> IndexesInMaking:
    first = piece.sources[0]
    limits = log.index_interval_bytes, log.segment_index_bytes
    return IndexesInMaking(first.path, first.base_offset, limits)


class _Measure:
    """Takes whole batches in the place of a file, and passes their facts on."""

    def __init__(
        self,
        first: Source,
        buffers: Buffers,
        take_facts: Callable[[BatchFacts], None],
    ) -> None:
        """first: the segment that the batches begin in."""
        self._path, self._previous_offset = first.path, first.base_offset - 1
        self._buffers, self._take_facts = buffers, take_facts
        self._measured_bytes = 0

    def write(self, data: memoryview) -> None:
        """Raise MiswrittenError where it is not made of whole batches with rising offsets."""
        taken, buffer = 0, np.frombuffer(data, np.uint8)
        while taken < len(data):
            rows = self._buffers.array("measured", 1 << 12, np.int64, BATCH_COLUMNS)
            count, framed, code, detail = walk_batches(
                buffer[taken:], len(data) - taken, taken, self._previous_offset, rows
            )
            if not count:
                problem = problem_text(code, detail) if code != OK else "a batch is cut short"
                problem = f"byte {self._measured_bytes + taken} of what would be written: {problem}"
                raise MiswrittenError(self._path, 0, f"{problem}; {FAULT}")
            self._take_facts(
                batch_facts(Window(path="", buffer=buffer, file_position=0, rows=rows[:count]))
            )
            self._previous_offset = int(rows[count - 1, LAST_OFFSET])
            taken += framed
        self._measured_bytes += taken


def _measure(piece: Piece, log: LogRules, context: PieceContext) -> Rewritten:
    if piece.of > 1:
        return _measure_part_of_group(piece, log, context)
    making = _indexes_in_making(piece, log)
    result = _measured(piece, log, context, making.add)
    if result.log_bytes > segment_indexes.MAX_LOG_BYTES:
        return _measure_part_of_group(piece, log, context)
    return result._replace(sparse_indexes=making.finish().sparse)


def _measure_part_of_group(piece: Piece, log: LogRules, context: PieceContext) -> Rewritten:
    path = _work_path(piece, context, "facts")
    with FactsFile(path, context.disk) as facts:
        result = _measured(piece, log, context, facts.add)
        return result._replace(facts_file=path, facts_checksum=facts.checksum())


def _measured(
    piece: Piece, log: LogRules, context: PieceContext, take_facts: Callable[[BatchFacts], None]
) -> Rewritten:
    sink = _Measure(piece.sources[0], context.buffers, take_facts)
    rewriter = BatchRewriter(_rules(log, context), sink, context.buffers)
    rewrite_sections(piece, log, context, rewriter)
    log_bytes = rewriter.finish()
    return _result(piece, log_bytes, rewriter.counts)


def _write_part_of_group(piece: Piece, log: LogRules, context: PieceContext) -> Rewritten:
    path, facts_path = (_work_path(piece, context, kind) for kind in ("log", "facts"))
    rewriter = _write_log(path, piece, log, context, model=None)
    base_offset = piece.sources[0].base_offset
    columns = RecordColumns(context.settings, context.buffers)
    with FactsFile(facts_path, context.disk) as facts:
        cleaned = read_back(path, base_offset, columns, rewriter.written, facts.add, context.disk)
    result = _checked(_result(piece, cleaned.log_bytes, rewriter.counts), cleaned)
    return result._replace(
        log_file=path,
        txn_index_file=piece.txn_index_file,
        facts_file=facts_path,
        facts_checksum=facts.checksum(),
    )


def _write_group(piece: Piece, log: LogRules, context: PieceContext) -> Rewritten:
    base_offset, disk = piece.sources[0].base_offset, context.disk
    suffix = staged_suffix(context.settings.run_id, context.attempt)
    names = [
        os.path.join(log.path, file_name(base_offset, kind) + suffix)
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX)
    ]
    txn_index = _new_txn_index(piece, disk)
    if txn_index is None:
        names.pop()
    log_file, *index_files = names
    try:
        model = disk.attributes_of(piece.sources[-1].path)
        rewriter = _write_log(log_file, piece, log, context, model)
        if size_of(disk, log_file) > segment_indexes.MAX_LOG_BYTES:
            disk.remove(log_file)
            return _write_part_of_group(piece, log, context)  # the driver cuts it
        making = _indexes_in_making(piece, log)
        columns = RecordColumns(context.settings, context.buffers)
        cleaned = read_back(log_file, base_offset, columns, rewriter.written, making.add, disk)
        indexes = making.finish()
        contents = [indexes.offset_index, indexes.time_index]
        if txn_index is not None:
            contents.append(txn_index)
        for path, content in zip(index_files, contents, strict=True):
            write_like(path, content, model, disk)
    except BaseException:
        for name in names:
            with contextlib.suppress(OSError):  # the first error counts; the round sweeps it
                disk.remove(name)
        raise
    result = _checked(_result(piece, cleaned.log_bytes, rewriter.counts), cleaned)
    return result._replace(
        log_file=log_file,
        index_file=index_files[0],
        time_index_file=index_files[1],
        txn_index_file="" if txn_index is None else index_files[2],
        sparse_indexes=indexes.sparse,
        index_checksums=tuple(map(xxhash.xxh3_64_intdigest, contents)),
    )


def _write_log(
    path: str,
    piece: Piece,
    log: LogRules,
    context: PieceContext,
    model: FileAttributes | None,
) -> BatchRewriter:
    """Write the cleaned batches; with a model, as a file that is to go live."""
    with naming(path), context.disk.open_raw(path, "xb") as out:
        rewriter = BatchRewriter(_rules(log, context), out, context.buffers)
        rewrite_sections(piece, log, context, rewriter)
        rewriter.finish()
        if model is not None:
            finish_like(out.fileno(), model, context.disk)
    return rewriter


def _rules(log: LogRules, context: PieceContext) -> CleaningRules:
    now_ms, from_ms = context.settings.now_ms, context.settings.horizons_from_ms
    return CleaningRules(
        KeptBatches.of(log.kept_end_offset, log.active_producers),
        now_ms,
        delete_horizon(now_ms if from_ms is None else from_ms, log.delete_retention_ms),
    )


def _work_path(piece: Piece, context: PieceContext, kind: str) -> str:
    name = f"{piece.log_id}-{piece.group}-{piece.number}-{context.attempt}.{kind}"
    return os.path.join(context.settings.work_dir, "pieces", name)


def _result(piece: Piece, log_bytes: int, counts: OutputCounts) -> Rewritten:
    return Rewritten(
        log_id=piece.log_id,
        group=piece.group,
        number=piece.number,
        log_bytes=log_bytes,
        records_kept=counts.records_kept,
        control_records_kept=counts.control_records_kept,
        dropped=counts.dropped,
        dropped_fingerprints=counts.dropped_fingerprints % FINGERPRINT_RANGE,
        batches_kept=counts.kept,
        batches_rebuilt=counts.rebuilt,
        batches_emptied=counts.emptied,
        builds=installed_builds(),
        legacy_emptied=counts.legacy_emptied,
        refused=counts.refused,
    )


def _checked(result: Rewritten, cleaned: WrittenLogFile) -> Rewritten:
    """Return what was read back takes the place of what was meant to be written."""
    return result._replace(
        log_checksum=cleaned.log_checksum,
        records_kept=cleaned.records,
        control_records_kept=cleaned.control_records,
        kept_fingerprints=cleaned.fingerprints,
    )
