"""python -m tests.engine.crash: crash states of the engine, opened by Kafka's engine and by ours.

Every state of every story: what was flushed is there, what is there is sound, and Kafka's engine
gives the same answers and leaves the same files. Some states both refuse to open, as Kafka's engine
does where a segment ends in zeros and the next one has no index yet; they are counted. Exit 1 where
something is wrong. --states: so many of each story, spread over it. Needs a JDK.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compactor.host.output import print_line
from tests.crash.matrix import sample
from tests.crash.states import CrashState, crash_states
from tests.engine.crash.opening import opened, script_of
from tests.engine.crash.record import Recorded, recorded
from tests.engine.crash.stories import STORIES
from tests.engine.transcripts import AS_BYTES, first_difference, lines_of
from tests.oracle import kafka

EVERY = 1 << 62
AT_ONCE = 1_000
TOLD = 10  # of each story


class Finding(NamedTuple):
    """What came of one state."""

    state: CrashState
    problems: Sequence[str]
    is_refused: bool


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.crash", description=__doc__)
    parser.add_argument("--states", type=int, default=EVERY)
    parser.add_argument("--story", choices=[story.name for story in STORIES], action="append")
    parser.add_argument("--ours-alone", action="store_true", help="without Kafka's engine")
    wanted = parser.parse_args()
    tried = wrong = 0
    for story in STORIES:
        if wanted.story and story.name not in wanted.story:
            continue
        with tempfile.TemporaryDirectory(prefix="engine-crash-") as scratch:
            run = recorded(story, Path(scratch))
            states = sample(list(crash_states(run.record)), wanted.states)
            found = list(_tried(run, states, Path(scratch), wanted.ours_alone))
        bad = [finding for finding in found if finding.problems]
        refused = sum(finding.is_refused for finding in found)
        print_line(f"{story.name}: {len(found)} states, {refused} refused, {len(bad)} wrong")
        for finding in bad[:TOLD]:
            print_line(told(run, finding))
        tried, wrong = tried + len(found), wrong + len(bad)
    print_line(f"{tried} crash states, {wrong} wrong")
    return int(wrong > 0)


def _tried(
    run: Recorded, states: Sequence[CrashState], scratch: Path, ours_alone: bool
) -> Iterator[Finding]:
    for start in range(0, len(states), AT_ONCE):
        some = states[start : start + AT_ONCE]
        theirs = [None] * len(some) if ours_alone else asked(some, scratch)
        for state, expected in zip(some, theirs, strict=True):
            log_dir = scratch / "opened"
            outcome = opened(run, state, log_dir)
            shutil.rmtree(log_dir)
            problems = list(outcome.problems)
            if expected is not None:
                actual = json.loads(json.dumps(outcome.transcript))
                difference = first_difference(expected, actual, AS_BYTES)
                problems += [] if difference is None else [f"Kafka: {difference}"]
            yield Finding(state, problems, outcome.is_refused)


def asked(states: Sequence[CrashState], scratch: Path) -> list[list[dict[str, object]]]:
    """Kafka's transcripts, from one process."""
    scripts, answers = scratch / "scripts", scratch / "answers"
    scripts.mkdir()
    for number, state in enumerate(states):
        text = "".join(json.dumps(line) + "\n" for line in script_of(state))
        (scripts / f"{number:06}.jsonl").write_text(text)
    kafka.run("engine-all", scripts, answers)
    found = [
        lines_of((answers / f"{number:06}.transcript.jsonl").read_text())
        for number in range(len(states))
    ]
    shutil.rmtree(scripts)
    shutil.rmtree(answers)
    return found


def told(run: Recorded, finding: Finding) -> str:
    state = finding.state
    last = run.record.operations[state.operations - 1] if state.operations else "nothing"
    what = "\n  ".join(finding.problems[:3])
    return f"after operation {state.operations} ({last}), {state.kind}:\n  {what}"


if __name__ == "__main__":
    sys.exit(main())
