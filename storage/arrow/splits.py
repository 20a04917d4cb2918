"""Parts of a log that can be read apart from each other, of about the same size.

A part ends where an entry of the offset index says that a batch does. What the index says decides
about the sizes alone: which records belong to a part, their offsets say.
"""

import os
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from storage.arrow.log_view import LogView, entries_of, indexed_position, view_of_directory
from storage.arrow.selection import Selection
from storage.errors import CorruptFileError
from storage.file_names import offset_of
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import offset_index
from storage.formats.batch_columns import Int64Array


def splits_of(
    path: str, selection: Selection, split_bytes: int, files: Files = LOCAL
) -> list[LogView]:
    """Give the parts of the directory of a partition, by rising offset; what is to be read of them
    is looked at once. Raise what a read raises before its first record.

    max_bytes and until_damage of a selection are of a log, not of parts of it: without effect here.
    """
    view = view_of_directory(path, selection, files)
    wanted = selection.range
    first = max(view.first_offset, wanted.first_offset)
    end = min(view.end_offset, wanted.end_offset)
    narrowed = view._replace(first_offset=first, end_offset=end)
    return [part for part in _parts(narrowed, split_bytes) if part.first_offset < part.end_offset]


def _parts(view: LogView, split_bytes: int) -> Iterator[LogView]:
    for stretch in view.stretches:
        base_offset = offset_of(os.path.basename(stretch.path))
        assert base_offset is not None, stretch.path
        try:
            entries = entries_of(stretch, view.files)
        except CorruptFileError:  # one part, then
            entries = np.empty(0, offset_index.ENTRY)
        positions = np.arange(stretch.start + split_bytes, stretch.end, split_bytes)
        chosen = np.unique(np.searchsorted(entries["position"], positions))
        last_offsets = entries["relative_offset"][chosen[chosen < len(entries)]]
        edges = [base_offset, *(base_offset + int(last) + 1 for last in last_offsets), 2**63 - 1]
        for first, end in pairwise(edges):
            start = indexed_position(stretch, base_offset, first, view.files)
            yield view._replace(
                stretches=(stretch._replace(start=start),),
                first_offset=max(view.first_offset, first),
                end_offset=min(view.end_offset, end),
                aborted=_touching(view, first, end),
            )


def _touching(view: LogView, first: int, end: int) -> Int64Array:
    aborted = view.aborted
    return aborted[(aborted[:, 2] >= first) & (aborted[:, 1] < end)]
