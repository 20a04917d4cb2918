"""`python -m tests.support.prepared_host`: the local engine's host of workers, prepared by a test.

The environment names a function. It is called before the workers are forked, so that what it
changes in this process is changed in each of them: a function of the system, a step of a task.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection

import pytest

from cleaner_jobs.local import worker_host, worker_pool
from cleaner_jobs.local.worker_pool import Workers
from tests.support.command_process import PROJECT

PREPARE = "PREPARE_WORKERS"


@contextmanager
def prepared_workers(
    prepare: Callable[[], None], environ: dict[str, str], processes: int = 1
) -> Iterator[Workers]:
    """Yield workers whose host calls a function first, also where they are started again.

    prepare: is found by its module and name. environ: what it reads of the environment.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "HOST_MODULE", __name__)
        patch.syspath_prepend(str(PROJECT))
        prepared_by = f"{prepare.__module__}:{prepare.__name__}"
        for name, value in {PREPARE: prepared_by, **environ}.items():
            patch.setenv(name, value)
        with Workers(processes) as workers:
            yield workers


def main() -> None:
    module, _, name = os.environ[PREPARE].partition(":")
    getattr(import_module(module), name)()
    driver, control, *workers = map(int, sys.argv[1:])
    worker_host.main(driver, Connection(control), [Connection(each) for each in workers])


if __name__ == "__main__":
    main()
