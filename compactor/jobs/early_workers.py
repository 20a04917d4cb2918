"""Worker processes that load while the command line itself is still being loaded.

From a command's start to its first task it takes half a second, and loading a worker takes longer.
So the command line starts workers before anything else, where its words look like work that the
local engine will do. A round takes them if it turns out to be so; otherwise they are ended.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from cleaner_jobs.first_use import are_kernels_compiled
from cleaner_jobs.local.worker_pool import Workers
from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from storage.errors import CleaningFailedError

COMMANDS = "run", "inspect"
NOT_WITH = "--help", "--master", "spark"  # the last one as the value of --engine

_started: Workers | None = None


@contextmanager
def workers_started_early(words: Sequence[str]) -> Iterator[None]:
    """Start workers if the words of a command line probably need some; end them with the context.

    Nothing depends on that guess but time: who needs workers and has none starts its own.
    """
    global _started
    with Workers() as workers:
        with suppress(CleaningFailedError, OSError):  # who needs them says what is wrong
            if _probably_need_workers(words) and are_kernels_compiled(os.environ):
                workers.pool()
                _started = workers
        try:
            yield
        finally:
            _started = None


def early_workers() -> Workers | None:
    """Return the workers that were started early and have not ended."""
    return _started


def _probably_need_workers(words: Sequence[str]) -> bool:
    command = next((word for word in words if not word.startswith("-")), None)
    values = {value for word in words for value in word.split("=")}
    is_submitted = SUBMITTED_VARIABLE in os.environ
    return command in COMMANDS and values.isdisjoint(NOT_WITH) and not is_submitted
