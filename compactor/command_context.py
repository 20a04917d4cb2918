"""The context of a command: what is known of it so far, to report how it ended wherever it ends.

The command line opens a context, and each function of the API notes in it what it learns. Without
an open context, notes are dropped.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compactor.host.clock import now_ms

if TYPE_CHECKING:
    from compactor.log_dirs.preconditions import RunEnding
    from compactor.settings.config import Config
    from storage.kafka_versions import KafkaUse


@dataclass(slots=True)
class CommandContext:
    """What one command has noted so far."""

    started_at_ms: int
    run_id: str
    log_dirs: list[str] = field(default_factory=list)  # that it is about, in the order given
    as_of_ms: int | None = None  # the time taken as now; None: not asked for yet, or never
    config: "Config | None" = None  # None: not read yet, or never
    topics: set[str] = field(default_factory=set)  # whose settings count
    kafka: tuple["KafkaUse", ...] = ()  # whose answer is given, of each broker
    notices: list[str] = field(default_factory=list)  # that every command shows
    is_changed: bool = False  # something in the log directories or in kept originals, or may be
    began: float = field(default_factory=time.monotonic)
    has_run: bool = False  # a round has taken the id
    run_ending: "RunEnding | None" = None  # as foreseen by a plan that came to no end itself

    @property
    def seconds(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - self.began

    def note_log_dirs(self, paths: Iterable[str]) -> None:
        """Add log directories that the command is about, each once."""
        self.log_dirs = list(dict.fromkeys([*self.log_dirs, *paths]))

    def take_run_id(self) -> str:
        """Return the id of the next round: the command's own for the first, then new ones."""
        taken = _new_id() if self.has_run else self.run_id
        self.has_run = True
        return taken


_current: ContextVar[CommandContext | None] = ContextVar("command_context", default=None)


@contextmanager
def open_context() -> Iterator[CommandContext]:
    """Make a context current for the length of a block."""
    context = _new()
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def current_context() -> CommandContext:
    """Return the open context, or a new one that nobody reads."""
    return _current.get() or _new()


def _new() -> CommandContext:
    return CommandContext(started_at_ms=now_ms(), run_id=_new_id())


def _new_id() -> str:
    """Return eight hexadecimal digits, the first a letter: 1e234567 is a number in CSV."""
    first, *others = os.urandom(4)
    return bytes([first | 0xA0, *others]).hex()
