"""python -m tests.engine.damage: every damage by Kafka's engine and by ours, transcripts compared.

Needs a JDK. `--keep` writes the sample that the tests go by. A damage is wrong where our engine
goes on in silence with another answer than Kafka's, or ends with an error that is none of the log.
"""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from compactor.host.output import print_line
from tests.campaign import Campaign, Case, Options, Tried
from tests.engine.damage.scripts import Damaged, scripts
from tests.engine.damage.verdicts import WRONG, Kind, verdict
from tests.engine.rules import kept
from tests.engine.rules.kept import Answer

SAMPLE = "damage"
SAMPLED = 50  # one of so many
AT_ONCE = 2_000  # by one process of Kafka's


def cases(wanted: Namespace, _: Path) -> Iterator[Case]:
    some = list(scripts())[wanted.first :: SAMPLED if wanted.keep else wanted.every]
    at_once = len(some) if wanted.keep else AT_ONCE
    for start in range(0, len(some), at_once):
        batch = some[start : start + at_once]
        name = f"{batch[0].name} to {batch[-1].name}"
        yield Case(name, partial(_tried, batch, wanted.keep))


def _tried(damages: Sequence[Damaged], keeps: bool) -> Tried:
    found = kept.ask_kafka(each.script for each in damages)
    answers = [(each.name, answer) for each, answer in zip(damages, found, strict=True)]
    if keeps:
        kept.write(SAMPLE, answers)
    problems, counts = [], Counter[str]()
    for name, answer in answers:
        judged = verdict(answer)
        counts[f"in Kafka {ending(answer)}"] += 1
        counts[f"here with {judged.kind.value}"] += 1
        told = f"{name}: {judged.kind.value}: {judged.difference}"
        if judged.kind in WRONG:
            problems.append(told)
        elif judged.kind is not Kind.SAME:
            print_line(told)
    return Tried(problems, counts, cases=len(answers))


def ending(answer: Answer) -> str:
    """What came of opening a damaged log, by Kafka's own answer."""
    numbers = [i for i, line in enumerate(answer.transcript) if line["op"] == "damage"]
    opened = answer.transcript[numbers[0] + 1]
    if "error" in opened:
        return f"not opened: {opened['error']}"
    used = [line["error"] for line in answer.transcript[numbers[0] + 2 :] if "error" in line]
    return f"opened, then {used[0]}" if used else "opened and used"


OPTIONS: Options = {
    "--every": {"type": int, "default": 1, "help": "one of so many damages only"},
    "--first": {"type": int, "default": 0, "help": "the number of the first, from 0"},
    "--keep": {"action": "store_true", "help": "write the sample for the tests"},
}
CAMPAIGN = Campaign("tests.engine.damage", __doc__, cases, options=OPTIONS)
if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
