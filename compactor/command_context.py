"""What is known of a command by now, for whoever tells how it ended: it may end anywhere.

The command line opens an account, and each function of the api notes in it what it learns. Where
nobody has opened one, what is noted goes nowhere.
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
class Account:
    """Of one command."""

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
        """How long it has been at work."""
        return time.monotonic() - self.began

    def note_log_dirs(self, paths: Iterable[str]) -> None:
        self.log_dirs = list(dict.fromkeys([*self.log_dirs, *paths]))

    def take_run_id(self) -> str:
        """The id of the next round: that of the command for its first, and then another each."""
        taken = _new_id() if self.has_run else self.run_id
        self.has_run = True
        return taken


_current: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def opened() -> Iterator[Account]:
    """An account of all that is done meanwhile."""
    account = _new()
    token = _current.set(account)
    try:
        yield account
    finally:
        _current.reset(token)


def current() -> Account:
    """The one that is open; where none is, one that nobody reads."""
    return _current.get() or _new()


def _new() -> Account:
    return Account(started_at_ms=now_ms(), run_id=_new_id())


def _new_id() -> str:
    """Eight hexadecimal digits, a letter first: to readers of CSV, 1e234567 is a number."""
    first, *others = os.urandom(4)
    return bytes([first | 0xA0, *others]).hex()
