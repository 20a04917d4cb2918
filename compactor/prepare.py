"""`python -m compactor.prepare`: what the first run would do once for the machine, done now."""

import os
import sys

from cleaner_jobs.spark import warm_up
from cleaner_jobs.spark.java_cache import cache_dir
from cleaner_jobs.spark.patience import ending_stopped_processes
from compactor.errors import CleaningFailedError
from compactor.host.java import use_java
from compactor.jobs.work_dir import open_work_dir
from storage.files.local import LOCAL


def main() -> int:
    """The exit code: 1 where there is no Java, so that no run could start."""
    try:
        use_java(os.environ, cache_dir(os.environ))
        with open_work_dir(None, "prepare", LOCAL) as work_dir, ending_stopped_processes(_tell):
            warm_up.prepare({**os.environ, warm_up.WORK_DIR_VARIABLE: work_dir}, _tell)
    except CleaningFailedError as error:
        _tell(str(error))
        return 1
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
