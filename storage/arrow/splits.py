"""Parts of a log that can be read apart from each other, of about the same size.

Small segments are joined to a part. A part of a larger segment ends where an entry of the offset
index says that a batch does. The index decides about the sizes alone: the offsets of records say to
which part they belong.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from storage.arguments import PathArg, count_of, path_of, require_a
from storage.arrow.batch_runs import Stretch
from storage.arrow.log_view import LogView, entries_of, indexed_position, view_of_directory
from storage.arrow.selection import Selection
from storage.errors import CorruptFileError
from storage.file_names import offset_of
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import offset_index
from storage.formats.batch_columns import Int64Array

_NO_END = 2**63 - 1


def splits_of(
    path: PathArg, selection: Selection, split_bytes: int, files: Files = LOCAL
) -> list[LogView]:
    """Give the parts of the directory of a partition, by rising offset; what is to be read of them
    is looked at once. Raise what a read raises before its first record.

    max_bytes and until_damage of a selection are of a log, not of parts of it: without effect here.
    """
    require_a(Selection, "selection", selection, "an arrow.Selection")
    split_bytes = count_of("split_bytes", split_bytes, 1, _NO_END)
    view = view_of_directory(path_of("path", path), selection, files)
    wanted = selection.range
    first = max(view.first_offset, wanted.first_offset)
    end = min(view.end_offset, wanted.end_offset)
    narrowed = view._replace(first_offset=first, end_offset=end)
    return [part for part in _parts(narrowed, split_bytes) if part.first_offset < part.end_offset]


def _parts(view: LogView, split_bytes: int) -> Iterator[LogView]:
    """Cut large segments, and join small ones that follow each other."""
    held, held_bytes = list[Stretch](), 0
    for stretch in view.stretches:
        size_bytes = stretch.end - stretch.start
        if held and held_bytes + size_bytes > split_bytes:
            yield _part(view, held, _base_offset(held[0]), _NO_END)
            held, held_bytes = [], 0
        if size_bytes > split_bytes:
            yield from _cut(view, stretch, split_bytes)
        else:
            held.append(stretch)
            held_bytes += size_bytes
    if held:
        yield _part(view, held, _base_offset(held[0]), _NO_END)


def _base_offset(stretch: Stretch) -> int:
    base_offset = offset_of(os.path.basename(stretch.path))
    assert base_offset is not None, stretch.path
    return base_offset


def _cut(view: LogView, stretch: Stretch, split_bytes: int) -> Iterator[LogView]:
    """The parts of a segment."""
    base_offset = _base_offset(stretch)
    try:
        entries = entries_of(stretch, view.files)
    except CorruptFileError:  # one part, then
        entries = np.empty(0, offset_index.ENTRY)
    positions = np.arange(stretch.start + split_bytes, stretch.end, split_bytes)
    chosen = np.unique(np.searchsorted(entries["position"], positions))
    last_offsets = entries["relative_offset"][chosen[chosen < len(entries)]]
    edges = [base_offset, *(base_offset + int(last) + 1 for last in last_offsets), _NO_END]
    for first, end in pairwise(edges):
        start = indexed_position(stretch, base_offset, first, view.files)
        yield _part(view, [stretch._replace(start=start)], first, end)


def _part(view: LogView, stretches: Sequence[Stretch], first: int, end: int) -> LogView:
    return view._replace(
        stretches=tuple(stretches),
        first_offset=max(view.first_offset, first),
        end_offset=min(view.end_offset, end),
        aborted=_touching(view, first, end),
    )


def _touching(view: LogView, first: int, end: int) -> Int64Array:
    aborted = view.aborted
    return aborted[(aborted[:, 2] >= first) & (aborted[:, 1] < end)]
