"""Joins the first pieces of a segment group while others are still being written.

They are put behind one another as they come, in a staged file that no broker knows. Nothing is
decided by that: the group is proven when all of its pieces are there, and what has become of it by
then is swept with every other staged file.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress

from cleaner_jobs.messages import LogPlan, Rewritten, Source
from cleaner_jobs.staging import staged_suffix
from compactor.cleaning.assembly import JoinedSegment, LogInJoining, Span, join_pieces
from compactor.finalizer import StagedGroup
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.files import filesystem
from storage.files.file_attributes import attributes_of
from storage.formats import segment_indexes


class EarlyJoin:
    """The pieces of one group. Several threads may add some, and one finishes."""

    def __init__(self, plan: LogPlan, sources: tuple[Source, ...], run_id: str) -> None:
        self._plan, self._sources, self._run_id = plan, sources, run_id
        self._lock = threading.Lock()
        self._waiting: dict[int, Rewritten] = {}  # by number: pieces before them are missing
        self._next = 0
        self._log: LogInJoining | None = None
        self._problem: BaseException | None = None
        self._is_over = False

    def add(self, piece: Rewritten) -> None:
        """Join a piece, and those that waited for it, if it is their turn.

        What goes wrong is for `finish`; what is no fault of a file is raised here, too.
        """
        with self._lock:
            self._waiting[piece.number] = piece
            try:
                while not self._is_over and self._next in self._waiting:
                    self._add(self._waiting.pop(self._next))
            except BaseException as error:  # whatever it is, bytes may stand there that none counts
                self._problem, self._is_over = error, True
                self._discard()  # others may need the room
                if not isinstance(error, (CorruptFileError, OSError)):
                    raise

    def _add(self, piece: Rewritten) -> None:
        log = self._opened()
        if log.log_bytes + piece.log_bytes > segment_indexes.MAX_LOG_BYTES:
            self._is_over = True  # where to cut it is known when all pieces are there
            return
        if piece.log_bytes:
            log.add(Span(piece, 0, piece.log_bytes))
        self._next += 1

    def _opened(self) -> LogInJoining:
        if self._log is None:
            first, last = self._sources[0], self._sources[-1]
            path = os.path.join(self._plan.path, file_name(first.base_offset, LOG))
            path += staged_suffix(self._run_id, "joined")
            self._log = LogInJoining(path, first.base_offset, attributes_of(last.path))
        return self._log

    def finish(
        self, rewritten: Sequence[Rewritten], segments: Sequence[JoinedSegment]
    ) -> StagedGroup:
        """Join what is left, into the segments of joined_segments.

        Raise CorruptFileError or OSError, and leave nothing.
        """
        with self._lock:
            self._is_over = True
            if self._problem is not None:
                raise self._problem
            begun = self._opened()
            staged = join_pieces(self._plan, self._sources, rewritten, segments, begun)
            self._log = None
            return staged

    def close(self) -> None:
        """Add nothing more, and leave nothing of what was not finished."""
        self._is_over = True  # for who adds at this moment, too: the piece at hand is the last
        with self._lock:
            self._discard()

    def _discard(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            with suppress(OSError):  # nobody reads it any more
                log.__exit__()
            with suppress(OSError):  # the round sweeps it
                filesystem.remove(log.path)
