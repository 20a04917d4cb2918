"""python -m tests.conformance: random logs against Kafka; see random_logs."""

import sys

from tests.conformance.random_logs import run_from_shell

sys.exit(run_from_shell(sys.argv[1:]))
