"""Remembers the speed of the last runs on this machine, in the user's cache directory.

Its `runs.json` has a few numbers of each run that has read 10 MB or more: no name of a log, and
nothing that may not be lost. The last 50 are kept, for 90 days.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from typing import NamedTuple

from compactor.json_types import is_of_type
from storage.files.local import LOCAL

KEPT_RUNS, KEPT_MS = 50, 90 * 86_400_000
LEAST_BYTES = 10_000_000  # a smaller run says nothing of speed
_ASKED_RUNS = 10
_FILE = "runs.json"

Cache = str | os.PathLike[str]  # the user's directory


class PastRun(NamedTuple):
    """A run that was done."""

    ended_at_ms: int
    start_seconds: float  # until Spark was ready
    seconds: float  # of the work after that
    log_bytes: int  # that were read and rewritten


class Pace(NamedTuple):
    """What a run is expected to take."""

    start_seconds: float = 10.0
    bytes_per_second: float = 30e6
    runs: int = 0  # that this is known from; 0: it is a guess, on the safe side

    def seconds(self, log_bytes: int) -> float:
        """Return the expected seconds of a run over `log_bytes`."""
        return self.start_seconds + log_bytes / self.bytes_per_second

    def bytes_within(self, seconds: float) -> int:
        """Return the bytes that can be read and rewritten in a time."""
        return max(0, int((seconds - self.start_seconds) * self.bytes_per_second))


def past_runs(cache: Cache, now_ms: int) -> list[PastRun]:
    """Return the remembered runs, oldest first; none where the file cannot be read."""
    try:
        found = json.loads(LOCAL.read_bytes(os.path.join(cache, _FILE)))
    except (OSError, ValueError, RecursionError):
        return []  # none yet: a guess is as good as any
    if not is_of_type(found, list[tuple[int, float, float, int]]):
        return []  # of another version
    runs = [PastRun(*values) for values in found if min(values) >= 0]
    return [run for run in runs if 0 <= now_ms - run.ended_at_ms < KEPT_MS][-KEPT_RUNS:]


def pace_of(runs: Sequence[PastRun]) -> Pace:
    """Return the pace of the last runs; a guess without any."""
    if not runs:
        return Pace()
    last = runs[-_ASKED_RUNS:]
    speed = median(run.log_bytes / max(run.seconds, 0.001) for run in last)
    return Pace(median(run.start_seconds for run in last), speed, len(last))


def remember(cache: Cache, run: PastRun) -> None:
    """Add a run to the others. Where that cannot be written, the next run guesses."""
    if run.log_bytes < LEAST_BYTES:
        return
    runs = [*past_runs(cache, run.ended_at_ms), run][-KEPT_RUNS:]
    with suppress(OSError):
        LOCAL.make_directories(os.fspath(cache))
        LOCAL.replace_file(os.path.join(cache, _FILE), json.dumps(runs).encode())


def machine_pace(cache: Cache, now_ms: int) -> Pace:
    """Return the pace of the runs on this machine."""
    return pace_of(past_runs(cache, now_ms))
