"""`python -m tests.stages`: each fault at each stage of a run. Needs root, to mount disks."""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from demo.workload import write_log_dir
from tests.stages import campaign, held_run
from tests.stages.faults import FAULTS

RECORDS = 60_000


def main() -> int:
    """Hit, time, count; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.stages", description=__doc__)
    parser.add_argument("--stage", choices=held_run.STAGES, action="append")
    parser.add_argument("--fault", choices=[fault.name for fault in FAULTS], action="append")
    parser.add_argument("--one-of", type=int, default=1, help="each Nth alone")
    wanted = parser.parse_args()
    cases = [
        (stage, fault)
        for stage in wanted.stage or held_run.STAGES
        for fault in FAULTS
        if stage in fault.stages and fault.name in (wanted.fault or [fault.name])
    ][:: wanted.one_of]
    wrong = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the disks are unmounted
    with tempfile.TemporaryDirectory(prefix="stages-") as root:
        logs = Path(root) / "logs"
        write_log_dir(str(logs), RECORDS, int(time.time() * 1000))
        for number, (stage, fault) in enumerate(cases):
            own = Path(root) / str(number)
            own.mkdir()
            outcome = campaign.run_into(own, logs, stage, fault)
            wrong += bool(outcome.problems)
            sys.stdout.write(f"{outcome.line()}\n")
            if outcome.code:
                sys.stdout.write(f"    {outcome.error[:300]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(cases)} runs, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
