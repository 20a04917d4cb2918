"""Worker processes that load while a run is being planned, where it will probably need them.

Half a second passes between a command's first line and its first task. So the command line starts
the local engine's processes before anything else; a round takes them if it turns out to be local.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cleaner_jobs.first_use import are_kernels_compiled
from cleaner_jobs.local.worker_pool import Workers
from compactor.command_context import current_context
from compactor.jobs.engine_choice import is_probably_local
from compactor.settings.rules import InspectOptions, RunOptions
from storage.errors import CleaningFailedError


@contextmanager
def workers_started_early(options: RunOptions | InspectOptions) -> Iterator[None]:
    """Start the processes if they will probably be needed; end them with the context."""
    with Workers() as workers:
        with suppress(CleaningFailedError, OSError):  # who needs them says what is wrong
            if is_probably_local(options) and are_kernels_compiled(os.environ):
                workers.pool()
                current_context().workers = workers
        yield
