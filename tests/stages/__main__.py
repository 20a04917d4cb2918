"""`python -m tests.stages`: each fault at each stage of a run, on each engine that has both.

Needs root, to mount disks.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from demo.workload import write_log_dir
from tests.campaign import Campaign, Case, Tried
from tests.stages import held_run
from tests.stages.campaign import run_into
from tests.stages.faults import FAULTS, Fault

RECORDS = 60_000


def cases(wanted: Namespace, root: Path) -> Iterator[Case]:
    logs = root / "logs"
    write_log_dir(str(logs), RECORDS, int(time.time() * 1000))
    for stage in wanted.only:
        for fault in FAULTS:
            if fault.name not in (wanted.fault or [fault.name]):
                continue
            for engine in fault.engines_at(stage):
                attempt = partial(_tried, root, logs, engine, stage, fault)
                yield Case(f"{fault.name}, {engine}", attempt, stage)


def _tried(root: Path, logs: Path, engine: str, stage: str, fault: Fault) -> Tried:
    own = root / f"{stage}, {fault.name}, {engine}"
    own.mkdir()
    return run_into(own, logs, engine, stage, fault)


CAMPAIGN = Campaign(
    "tests.stages",
    __doc__,
    cases,
    groups=held_run.STAGES,
    options={"--fault": {"choices": [fault.name for fault in FAULTS], "action": "append"}},
)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
