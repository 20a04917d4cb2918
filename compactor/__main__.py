"""`python -m compactor`, and the file that spark-submit is given (`compactor --entry-file`).

    spark-submit --master 'local[2]' "$(compactor --entry-file)" run LOG_DIR --topic-configs FILE

spark-submit ends with the exit code of this file.
"""

import os
import sys
from contextlib import ExitStack

if not __package__:  # run as a file: Python looks for modules beside it, not for the package
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> int:
    """Run the command line, which takes a moment to import, and in it too Ctrl-C may come."""
    # numpy's library for matrices, which are not used here, would start a thread on each core
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ExitStack() as until_the_end:
        try:
            from compactor.jobs.early_workers import workers_started_early
            from storage.gc_pause import collector_paused

            until_the_end.enter_context(workers_started_early(sys.argv[1:]))
            with collector_paused():
                from compactor.command_line import cli
        except KeyboardInterrupt:
            sys.stderr.write("compactor: interrupted. Nothing was changed.\n")
            return 130
        return cli.main()


if __name__ == "__main__":
    sys.exit(main())
