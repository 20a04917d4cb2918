"""python -m tests.conformance: random logs, codecs, retention and recovery, beside Kafka's own.

`ORACLE_KAFKA` names the Kafka. Seeds and the options of kinds are those of the random logs.
--record writes what its codecs make of the payloads of tests/storage/codecs into kafka_builds.json.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from tests.campaign import Campaign, Case
from tests.conformance import codec_bytes, random_logs, recovered_logs, retained_logs

RANDOM, CODECS, RETENTION, RECOVERY = GROUPS = ("random", "codecs", "retention", "recovery")


def cases(wanted: Namespace, scratch: Path) -> Iterator[Case]:
    if wanted.record:
        yield Case("record", codec_bytes.record)
        return
    if RANDOM in wanted.only:
        yield from random_logs.cases(wanted, scratch, RANDOM)
    if CODECS in wanted.only:
        yield from codec_bytes.cases(1, CODECS)
    if RETENTION in wanted.only:
        yield from retained_logs.cases(scratch, RETENTION)
    if RECOVERY in wanted.only:
        yield from recovered_logs.cases(wanted.crashes, scratch, RECOVERY)


OPTIONS = {
    **random_logs.OPTIONS,
    "--crashes": {"type": int, "default": 1, "help": "how often all golden logs crash"},
    "--record": {"action": "store_true", "help": "write kafka_builds.json"},
}
CAMPAIGN = Campaign("tests.conformance", __doc__, cases, GROUPS, 200, OPTIONS, jobs=2)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
