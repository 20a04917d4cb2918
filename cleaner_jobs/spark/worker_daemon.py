"""Spark's Python daemon with numpy and the compiled kernels loaded before it forks.

A worker's first kernel call then takes 0.02 s, not 0.4 to 1.3 s, and the memory of what is loaded
is shared by all workers. Named by `spark.python.daemon.module`; run as `python -m` by Spark.
"""

import gc
import sys
import traceback
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec

from cleaner_jobs.first_use import KERNELS_MODULE
from storage.gc_pause import collector_paused


def load() -> None:
    """Import what tasks need. What fails here fails again in a task, where Spark can report it."""
    # standard output is where Spark reads the daemon's port
    with redirect_stdout(sys.stderr), collector_paused():
        try:
            import_module("pyspark.worker")
            if find_spec(KERNELS_MODULE):
                import_module(KERNELS_MODULE).warm()
                import_module("cleaner_jobs.tasks.task")
        except Exception:
            traceback.print_exc()
    # A worker collects garbage after each task; what is loaded here never becomes any, and to
    # go through it takes a tenth of a second in which its core idles.
    gc.collect()
    gc.freeze()


def serve() -> None:
    """Be Spark's daemon; does not come back."""
    from pyspark.daemon import manager  # only here: it reads the arguments as it is imported

    manager()


if __name__ == "__main__":
    load()
    serve()
