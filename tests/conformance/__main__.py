"""python -m tests.conformance: random logs against Kafka, logs of our own writer, and retention.

With options only the first, see random_logs. The others alone: python -m
tests.conformance.written_logs, python -m tests.conformance.retained_logs.
"""

import sys

from tests.conformance import retained_logs, written_logs
from tests.conformance.random_logs import run_from_shell

WRITTEN_LOGS = ("--count", "25")


def main(arguments: list[str]) -> int | str:
    code = run_from_shell(arguments)
    if code or arguments:
        return code
    return written_logs.main(WRITTEN_LOGS) or retained_logs.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
