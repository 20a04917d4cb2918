"""python -m tests.conformance: codecs, random logs, retention, and recovery.

With options only random logs, see random_logs. The others alone: python -m
tests.conformance.codec_bytes, tests.conformance.retained_logs, tests.conformance.recovered_logs.
"""

import sys

from tests.conformance import codec_bytes, recovered_logs, retained_logs
from tests.conformance.random_logs import run_from_shell

CRASHES = ("--seeds", "1")


def main(arguments: list[str]) -> int | str:
    code = run_from_shell(arguments)
    if code or arguments:
        return code
    return codec_bytes.main() or retained_logs.main() or recovered_logs.main(CRASHES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
