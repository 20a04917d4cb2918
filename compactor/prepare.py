"""`python -m compactor.prepare`: what the first run would do once for the machine, done now."""

import os
import sys

from cleaner_jobs import first_use
from cleaner_jobs.patience import ending_stopped_processes
from cleaner_jobs.user_cache import cache_dir
from compactor.errors import CleaningFailedError
from compactor.host.java import use_java


def main() -> None:
    """Make the starter of a trimmed Java, if that is the Java to be used, and compile kernels."""
    try:
        use_java(dict(os.environ), cache_dir(os.environ))
    except CleaningFailedError as error:
        _tell(f"{error}. Runs work without it, in processes of this host")
    with ending_stopped_processes(_tell):
        first_use.prepare(os.environ, _tell)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
