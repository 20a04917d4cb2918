"""python -m tests.conformance: random logs against Kafka, then logs of our own writer.

With options only the former, see random_logs. The latter alone: python -m
tests.conformance.written_logs.
"""

import sys

from tests.conformance import written_logs
from tests.conformance.random_logs import run_from_shell

WRITTEN_LOGS = ("--count", "25")


def main(arguments: list[str]) -> int | str:
    code = run_from_shell(arguments)
    return code if code or arguments else written_logs.main(WRITTEN_LOGS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
