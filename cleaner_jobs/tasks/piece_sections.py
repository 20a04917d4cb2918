"""The sections of a piece's parts, read from their segments once more and rewritten."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleaner_jobs.kernels.batch_flags import flag_discardable
from cleaner_jobs.kernels.plain_runs import NO_MORE
from cleaner_jobs.kernels.record_states import drop_superseded
from cleaner_jobs.problems import FAULT, MiswrittenError, WorkFileError
from cleaner_jobs.task_values import (
    FINGERPRINT_RANGE,
    LogRules,
    Piece,
    RoundSettings,
    Section,
    Source,
)
from cleaner_jobs.tasks.batch_window import WindowReader
from cleaner_jobs.tasks.plain_source import PlainSource, found_sound
from cleaner_jobs.tasks.resolve import PartFiles, VerdictFiles
from cleaner_jobs.tasks.rewrite import BatchRewriter
from cleaner_jobs.tasks.txn_batches import load_array
from cleaner_jobs.tasks.worker_buffers import WorkerBuffers
from cleaner_jobs.tasks.written_batches import heads_of
from storage.errors import CorruptFileError
from storage.formats.batch_columns import POSITION, RECORDS_COUNT, Int64Array
from storage.formats.batch_windows import place_behind

NO_OFFSETS: Int64Array = np.zeros(0, np.int64)  # of control batches


class PieceContext(NamedTuple):
    """What a task works with, for all its pieces."""

    settings: RoundSettings
    attempt: str  # goes into every name that the task writes
    part_files: PartFiles
    verdict_files: VerdictFiles
    buffers: WorkerBuffers


def rewrite_sections(
    piece: Piece, log: LogRules, context: PieceContext, rewriter: BatchRewriter
) -> None:
    """Give a rewriter all batches of a piece, and the states that the verdicts make of the scan's.

    Raise CorruptFileError, LogChangedError or OSError.
    """
    discardable = load_array(piece.discardable_file) if piece.discardable_file else NO_OFFSETS
    for number, part in enumerate(piece.parts, piece.first_part):
        states = context.part_files.of(part).states(part)
        for verdict in log.verdicts:
            on_part = context.verdict_files.on_part(verdict, number)
            if not drop_superseded(states, on_part.superseded):
                problem = "a verdict names records that its part does not have"
                raise WorkFileError(verdict.file, verdict.block_at, problem)
            rewriter.counts.dropped += on_part.dropped
            rewriter.counts.dropped_fingerprints += on_part.dropped_fingerprints
        for section in part.sections:
            source = piece.sources[section.segment - piece.first_source]
            of_section = _OfSection(source, section, states)
            _rewrite_section(of_section, discardable, context.buffers, rewriter)


class _OfSection(NamedTuple):
    """A section of a part, and the states of all records of the part."""

    source: Source
    section: Section
    states: NDArray[np.uint8]


def _rewrite_section(
    of_section: _OfSection,
    discardable: Int64Array,
    buffers: WorkerBuffers,
    rewriter: BatchRewriter,
) -> None:
    source, section, states = of_section
    ordinal, heads, may_be_plain = section.first_ordinal, 0, True
    with WindowReader(source.path, source.base_offset, buffers) as reader:
        reader.check_planned(source)
        plain = PlainSource.of(reader, section.end, buffers)
        at = reader.start(section.start)
        while at.position < section.end:
            left = None
            if may_be_plain and 0 <= ordinal <= len(states):
                run = rewriter.rewrite_plain(plain, at, states[ordinal:], discardable)
                if len(run.rows):
                    at = plain.read_up_to(place_behind(run.rows[-1]), at)
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
                raise found_sound(left, at)
            heads += heads_of(window.buffer, 0, len(window.batches()))[0]
            ordinal += count
            may_be_plain = window.ends_plain()
            at = window.behind()
        reader.check_unchanged(source)
    if heads % FINGERPRINT_RANGE != section.heads:
        problem = f"the batches from here to byte {section.end} are not those that were "
        problem += f"scanned, though the file is the same; {FAULT}"
        raise MiswrittenError(source.path, section.start, problem)
