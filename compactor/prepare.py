"""`python -m compactor.prepare`: what the first run would do once for the machine, done now."""

import os
import sys
from functools import partial

from cleaner_jobs import first_use
from cleaner_jobs.patience import ending_stopped_processes
from cleaner_jobs.spark.java_cache import to_make
from cleaner_jobs.user_cache import cache_dir
from compactor.errors import CleaningFailedError
from compactor.host.java import use_java
from compactor.jobs.work_dir import open_work_dir
from storage.files.local import LOCAL


def main() -> int:
    """Prepare what this machine can use: without a Java, the kernels alone. Return the exit code.

    It is 1 where there is no work directory.
    """
    try:
        with open_work_dir(None, "prepare", LOCAL) as work_dir, ending_stopped_processes(_tell):
            environ = {**os.environ, first_use.WORK_DIR_VARIABLE: work_dir}
            first_use.prepare(environ, partial(_to_make, environ), _tell)
    except CleaningFailedError as error:
        _tell(str(error))
        return 1
    return 0


def _to_make(environ: dict[str, str]) -> list[first_use.ToMake]:
    try:
        use_java(environ, cache_dir(environ))
    except CleaningFailedError as error:
        _tell(f"{error}. Runs work without it, in processes of this host")
        return first_use.kernels_to_make(environ)
    return to_make(environ)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
