"""Reads the records of a log into Arrow: all at once, or batch by batch in bounded memory."""

import os
from collections.abc import Iterator

import pyarrow as pa

from storage.arguments import path_of
from storage.arrow.batch_runs import RunReader, Wanted
from storage.arrow.log_view import LogView, view_of_directory, view_of_log
from storage.arrow.record_batches import BatchMaker
from storage.arrow.record_kernel import Range
from storage.arrow.selection import EVERYTHING, BadSelectionError, Selection
from storage.errors import CorruptFileError, shown
from storage.files.local import LOCAL
from storage.formats.batch_header import CONTROL
from storage.log.log import Log

JOINED_ROWS, JOINED_BYTES = 32_768, 4 << 20  # of an Arrow batch that smaller ones are joined to
STOPPED_AT = b"stopped_at"  # in the metadata of a table: where until_damage has ended it, and why

Source = Log | LogView | str | os.PathLike[str]


class RecordStream:
    """The Arrow batches of a log, as they are asked for; at most some MiB each, or one log batch.

    Small ones, as of small segments or of batches whose codecs change, are joined.

    `stopped_at` says, once all have come, at what damage the log was left (`until_damage`).
    """

    def __init__(self, source: Source, selection: Selection = EVERYTHING) -> None:
        """Look at the log as it is now. Raise NotALogError, CorruptFileError or OSError."""
        if not isinstance(selection, Selection):
            raise BadSelectionError(f"selection={shown(selection)}: expected an arrow.Selection")
        self._selection, self.schema = selection, selection.schema
        self._view = _view(source, selection)
        self.stopped_at: CorruptFileError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, each with a record at least. Raise CorruptFileError or OSError behind
        the last that is sound.
        """
        try:
            yield from _joined(_batches(self._view, self._selection))
        except CorruptFileError as error:
            if not self._selection.until_damage:
                raise
            self.stopped_at = error

    def reader(self) -> pa.RecordBatchReader:
        """For whoever takes Arrow streams: DuckDB, Polars, a Parquet writer."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))


def read(source: Source, selection: Selection = EVERYTHING) -> pa.Table:
    """Give the records of a log, of one partition, as a table.

    source: an open Log, or the directory of a partition that no broker has open, of which nothing
    is changed; or a LogView of either. Raise what RecordStream raises.
    """
    stream = RecordStream(source, selection)
    table = pa.Table.from_batches(list(stream), stream.schema)
    if stream.stopped_at is None:
        return table
    return table.replace_schema_metadata({STOPPED_AT: str(stream.stopped_at).encode()})


def _view(source: Source, selection: Selection) -> LogView:
    if isinstance(source, LogView):
        return source
    if isinstance(source, Log):
        return view_of_log(source, selection)
    if not isinstance(source, str | os.PathLike):
        expected = "expected an open Log, a LogView or the directory of a partition"
        raise BadSelectionError(f"source={shown(source)}: {expected}")
    return view_of_directory(path_of("source", source), selection, LOCAL)


def _batches(view: LogView, selection: Selection) -> Iterator[pa.RecordBatch]:
    wanted = _narrowed(selection.range, view)
    maker = BatchMaker(view.topic, view.partition, selection, wanted)
    refused_bits = 0 if selection.control else CONTROL
    chosen = Wanted(range=wanted, refused_bits=refused_bits, aborted=view.aborted)
    reader = RunReader(chosen, selection.max_bytes)
    for stretch in view.stretches:
        if reader.is_done:
            return
        with view.files.open(stretch.path) as file:
            for run in reader.runs(stretch, file.read):
                filled = maker.make(run)
                if filled.batch.num_rows:
                    yield filled.batch
                if filled.problem is not None:
                    raise filled.problem


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches of few records with those that follow.

    What came before an error is given before the error is raised.
    """
    held = list[pa.RecordBatch]()
    rows = size_bytes = 0
    try:
        for batch in batches:
            rows += batch.num_rows
            size_bytes += batch.nbytes
            if held and (rows > JOINED_ROWS or size_bytes > JOINED_BYTES):
                yield _one(held)
                rows, size_bytes = batch.num_rows, batch.nbytes
            held.append(batch)
    except (CorruptFileError, OSError):
        if held:
            yield _one(held)
        raise
    if held:
        yield _one(held)


def _one(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches, and forget them before the result is used."""
    batch = held[0] if len(held) == 1 else pa.concat_batches(held)
    held.clear()
    return batch


def _narrowed(wanted: Range, view: LogView) -> Range:
    return wanted._replace(
        first_offset=max(wanted.first_offset, view.first_offset),
        end_offset=min(wanted.end_offset, view.end_offset),
    )
