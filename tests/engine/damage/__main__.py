"""python -m tests.engine.damage: every damage by Kafka's engine and by ours, transcripts compared.

Needs a JDK. `--keep` writes the sample that the tests go by. Ends with 1 where our engine goes on
in silence with another answer than Kafka's, or ends with an error that is none of the log.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from compactor.host.output import print_line
from tests.engine.damage.scripts import Damaged, scripts
from tests.engine.damage.verdicts import WRONG, Kind, verdict
from tests.engine.rules import kept
from tests.engine.rules.kept import Answer
from tests.engine.transcripts import lines_of
from tests.oracle import kafka

SAMPLE = "damage"
SAMPLED = 50  # one of so many


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="one of so many damages only")
    parser.add_argument("--first", type=int, default=0, help="the number of the first, from 0")
    parser.add_argument("--keep", action="store_true", help="write the sample for the tests")
    wanted = parser.parse_args()
    every = SAMPLED if wanted.keep else wanted.every
    with tempfile.TemporaryDirectory() as scratch:
        answers = answered(list(scripts())[wanted.first :: every], Path(scratch))
        if wanted.keep:
            kept.write(SAMPLE, answers)
        kinds, ends = Counter[Kind](), Counter[str]()
        for name, answer in answers:
            found = verdict(answer)
            kinds[found.kind] += 1
            ends[ending(answer)] += 1
            if found.kind is not Kind.SAME:
                print_line(f"{name}: {found.kind.value}: {found.difference}")
    for told, count in ends.most_common():
        print_line(f"{count:6} in Kafka {told}")
    for kind, count in kinds.most_common():
        print_line(f"{count:6} here with {kind.value}")
    sys.exit(any(kinds[kind] for kind in WRONG))


def answered(damages: Sequence[Damaged], scratch: Path) -> list[tuple[str, Answer]]:
    """Have Kafka's engine do them all, in one process."""
    asked, answers = scratch / "scripts", scratch / "answers"
    asked.mkdir()
    for number, each in enumerate(damages):
        text = "".join(json.dumps(line) + "\n" for line in each.script)
        (asked / f"{number}.jsonl").write_text(text)
    kafka.run("engine-all", asked, answers, "--hex", "true")
    return [
        (each.name, Answer([], *_lines(answers, number))) for number, each in enumerate(damages)
    ]


def _lines(answers: Path, number: int) -> Iterator[list[dict[str, object]]]:
    for kind in ("hex", "transcript"):
        yield lines_of((answers / f"{number}.{kind}.jsonl").read_text())


def ending(answer: Answer) -> str:
    """What came of opening a damaged log, by Kafka's own answer."""
    numbers = [i for i, line in enumerate(answer.transcript) if line["op"] == "damage"]
    opened = answer.transcript[numbers[0] + 1]
    if "error" in opened:
        return f"not opened: {opened['error']}"
    used = [line["error"] for line in answer.transcript[numbers[0] + 2 :] if "error" in line]
    return f"opened, then {used[0]}" if used else "opened and used"


if __name__ == "__main__":
    main()
