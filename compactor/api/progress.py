"""Progress of a call, and what it had changed if it ends with an error."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from compactor.command_context import current_context
from compactor.host.progress import ChangeWatch

_LOGGER = logging.getLogger("compactor.api")  # says what `on_progress` is told, bytes apart


class Event(StrEnum):
    """What a call reports while it is at work."""

    STAGE = "stage"  # one begins, and with it the one before is over
    ADVANCE = "advance"  # `done` has risen
    SWAPPED = "swapped"  # `swapped_groups` has risen
    MESSAGE = "message"  # there is a `message`


class Progress(NamedTuple):
    """One event of a call, and how far it is."""

    event: Event
    stage: str = ""  # "": none has begun
    done: int = 0  # units of the stage: bytes of .log; segments, partitions or groups of some
    total: int = 0  # 0: not known
    swapped_groups: int = 0  # segment groups that are in place
    message: str = ""  # something to be known now, in one line
    log: str | None = None  # TOPIC-PARTITION that the message is a warning about, if it is


class OnProgress(Protocol):
    """A function that a call tells how far it is, from any of its threads. Its result is ignored.

    What it raises ends the call and comes out of it; `what_was_changed` says what was done before.
    """

    def __call__(self, progress: Progress, /) -> object: ...


class Listener:
    """Passes the progress of a call to one function and to the log."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress, self._last = on_progress, Progress(Event.STAGE)
        self._lock = threading.Lock()  # swaps go on while stages begin

    def stage(self, name: str, total: int) -> None:
        _LOGGER.info("%s begins", name)
        self._report(event=Event.STAGE, stage=name, done=0, total=total)

    def advance(self, done: int) -> None:
        self._report(event=Event.ADVANCE, done=done)

    def swapped(self, groups: int) -> None:
        _LOGGER.debug("%d segment groups are swapped in", groups)
        self._report(event=Event.SWAPPED, swapped_groups=groups)

    def message(self, text: str, log: str | None = None) -> None:
        _LOGGER.log(logging.INFO if log is None else logging.WARNING, "%s", text)
        self._report(event=Event.MESSAGE, message=text, log=log)

    def _report(self, **news: Any) -> None:
        with self._lock:
            progress = self._last._replace(**news)
            self._last = progress._replace(message="", log=None)
        if self._on_progress is not None:
            self._on_progress(progress)


class _Changes(str):
    """The note of an error that says what was changed, a type of its own among other notes."""

    __slots__ = ()


@contextmanager
def watch_changes(on_progress: OnProgress | None) -> Iterator[ChangeWatch]:
    """Open a sink of progress; an error that passes gets a note of what was changed."""
    watch = ChangeWatch(Listener(on_progress))
    try:
        yield watch
    except BaseException as error:
        is_changed = watch.has_changed or (watch.retention_began and not watch.copies)
        note_changes(error, watch.what_was_changed(), is_changed)
        raise


def note_changes(error: BaseException, changed: str, is_changed: bool = True) -> None:
    """Add to an error what was changed, as a note that `what_was_changed` finds."""
    current_context().is_changed |= is_changed
    error.add_note(_Changes(changed))


def what_was_changed(error: BaseException) -> str | None:
    """Return what the call that raised an error had changed, in words; None: nothing."""
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, _Changes)]
    return str(notes[-1]) if notes else None
