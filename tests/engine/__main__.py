"""python -m tests.engine: random scripts, by Kafka's engine and by this one, transcripts compared.

With --everything logs are cleaned, too, and compressed anew by the log; with --manager the scripts
are about several logs under a log manager. A script in which a cleaning ends otherwise than
Kafka's, for a reason of docs/differences.md that our own report tells, is compared up to there, and
counted. Told as well is how many scripts have crashes, damage, lost directories or unclean opening
before their last lines. With --at-once appends that follow one another are one call.

Kafka does all scripts in one process; its answers, with every append as bytes, can be kept (`--kept
DIR`) and used again. Ends with 1 where a transcript differs.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor.host.output import print_line
from compactor.outcome.round_report import LogReport
from storage.files.local import LOCAL
from tests.engine import random_engine_script, random_manager_script
from tests.engine.at_once import LOOK_ALIKE, AtOnce
from tests.engine.other_cleanings import first_other_cleaning, without_leftovers
from tests.engine.replay.replayed import kernels_used, replayed
from tests.engine.script_values import Options
from tests.engine.transcripts import AS_BYTES, first_difference, lines_of
from tests.oracle import kafka

EVERYTHING = Options()
# nothing that the log compresses anew, whose bytes depend on the codec's build; no cleaning
OPTIONS = EVERYTHING._replace(recompression=False, cleans=False)
SUFFIX = ".transcript.jsonl"


def main() -> None:
    wanted = _parsed()
    with tempfile.TemporaryDirectory() as scratch:
        kept = wanted.kept or Path(scratch) / "kafka"
        if not kept.exists():
            _ask_kafka(wanted, Path(scratch) / "scripts", kept)
        counted = _Counted()
        with kernels_used(not wanted.without_kernels):
            differences = _differences_at_once if wanted.at_once else _differences
            found = list(differences(kept, Path(scratch) / "logs", counted))
    for name, difference in found:
        print_line(f"{name}: {difference}")
    for reason, count in counted.other_cleanings.most_common():
        print_line(f"{count} up to a cleaning that ends otherwise: {reason}")
    total = counted.scripts
    print_line(f"{counted.disturbed} of {total} scripts crash, are damaged or opened uncleanly")
    print_line(f"{total - len(found)} of {total} transcripts are Kafka's")
    sys.exit(bool(found))


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scripts", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--everything", action="store_true", help="recompression and cleaning, too")
    parser.add_argument("--manager", action="store_true", help="several logs and their manager")
    parser.add_argument("--at-once", action="store_true", help="several appends by one call")
    parser.add_argument("--kept", type=Path, help="Kafka's answers: used if there, else made")
    parser.add_argument("--without-kernels", action="store_true", help="batch by batch")
    return parser.parse_args()


def _ask_kafka(wanted: argparse.Namespace, scripts: Path, kept: Path) -> None:
    scripts.mkdir()
    random_script = random_manager_script if wanted.manager else random_engine_script
    for seed in range(wanted.first_seed, wanted.first_seed + wanted.scripts):
        text = random_script.script(seed, EVERYTHING if wanted.everything else OPTIONS)
        (scripts / f"engine-{seed:06d}.jsonl").write_text(text)
    kafka.run("engine-all", scripts, kept, "--hex", "true")


@dataclass
class _Counted:
    """What the scripts are about, and how far they were compared."""

    scripts: int = 0
    disturbed: int = 0  # with a crash, damage, a lost directory or an unclean opening
    other_cleanings: Counter[str] = field(default_factory=Counter)  # compared up to one, by reason

    def add(self, script: Sequence[dict[str, Any]]) -> None:
        self.scripts += 1
        self.disturbed += any(_disturbs(line) for line in script[:-2])


def _disturbs(line: dict[str, Any]) -> bool:
    return line["op"] in ("crash", "damage", "hide") or line.get("clean") is False


def _differences(kept: Path, logs: Path, counted: _Counted) -> Iterator[tuple[str, str]]:
    for expected in sorted(kept.glob(f"*{SUFFIX}")):
        name = expected.name.removesuffix(SUFFIX)
        lines = lines_of((kept / f"{name}.hex.jsonl").read_text())
        logs.mkdir(exist_ok=True)
        kafkas, reports = lines_of(expected.read_text()), dict[int, LogReport]()
        counted.add(lines)
        ours = replayed(LOCAL, str(logs / name), lines, reports)
        other = first_other_cleaning(kafkas, ours, reports)
        if other is not None:
            end, kind = other
            kafkas, ours = kafkas[:end], ours[:end]
            counted.other_cleanings[kind] += 1
        kafkas = without_leftovers(kafkas, ours, reports)
        difference = first_difference(kafkas, ours, AS_BYTES)
        if difference is not None:
            yield name, difference


def _differences_at_once(kept: Path, logs: Path, counted: _Counted) -> Iterator[tuple[str, str]]:
    logs.mkdir()
    calls = Counter[int]()
    for expected in sorted(kept.glob(f"*{SUFFIX}")):
        name = expected.name.removesuffix(SUFFIX)
        lines, kafkas = (
            lines_of(path.read_text()) for path in (kept / f"{name}.hex.jsonl", expected)
        )
        counted.add(lines)
        at_once = AtOnce(lines, kafkas)
        ours = at_once.replayed(LOCAL, str(logs / f"{name}-one-by-one"), str(logs / name))
        calls.update(at_once.calls)
        difference = first_difference(at_once.kept(), ours, LOOK_ALIKE)
        if difference is not None:
            yield name, difference
    print_line(f"{sum(calls.values())} calls, by how many batches each: {sorted(calls.items())}")


if __name__ == "__main__":
    main()
