"""python -m tests.engine.recoveries: `recover --as-kafka` against Kafka's own start and stop.

Of each random script, the moment before a log is opened again is taken: closed or crashed, mostly
damaged. Kafka opens and closes it there; what `recover --as-kafka` does with the same files has to
leave the same ones, and to fail where Kafka does, with the same error. `--keep` writes the sample
that the tests go by. Ends with 1 where something differs.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from compactor.host.output import print_line
from compactor.recovery.log_recovery import load_as_kafka
from storage.errors import ConfigError, LogCompactionError
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.kafka_versions import BY_NAME
from storage.log.errors import LogError
from storage.log.loading import LoadingState, LogOptions
from storage.log.log_config import LogConfig
from tests.engine.random_engine_script import script
from tests.engine.replay.replayed import kernels_used, replayed
from tests.engine.replay.script_clock import CONFIGURING, ScriptClock
from tests.engine.replay.script_values import settings_of
from tests.engine.replay.transcript import described, files_below
from tests.engine.rules import kept
from tests.engine.rules.kept import Answer
from tests.engine.script_values import Options
from tests.engine.transcripts import differences, lines_of
from tests.oracle import versions

OPTIONS = Options(recompression=False, cleans=False, hide=False)
LAST = [{"op": "close"}, {"op": "files"}]
MOST_OF_A_SCRIPT = 3
SAMPLE = "recoveries"
_OF_DIRECTORY = (".kafka_cleanshutdown", "-offset-checkpoint", ".deleted")

Line = dict[str, Any]


class Start(NamedTuple):
    """A log as it stands, and how it is opened."""

    name: str
    before: tuple[Line, ...]  # lines that lead there
    opening: Line

    @property
    def script(self) -> list[Line]:
        return [*self.before, self.opening, *LAST]


def starts_of(seed: int) -> Iterator[Start]:
    """The last times that a log of a random script is opened again."""
    lines = lines_of(script(seed, OPTIONS))
    again = [i for i, line in enumerate(lines) if line["op"] == "open"][1:]
    for number in again[-MOST_OF_A_SCRIPT:]:
        yield Start(f"{seed:06d}-{number:03d}", tuple(lines[:number]), lines[number])


def kept_sample() -> Iterator[tuple[Start, list[Line]]]:
    """Some with Kafka's answers, from a file."""
    for name, (_, lines, told) in kept.read(SAMPLE).items():
        yield Start(name, tuple(lines[: -len(LAST) - 1]), lines[-len(LAST) - 1]), told


def answers(starts: Sequence[Start]) -> Iterator[tuple[Start, list[Line]]]:
    """Yield each with the script as bytes, and then Kafka's last three lines."""
    told = kept.ask_kafka(start.script for start in starts)
    for start, (_, lines, transcript) in zip(starts, told, strict=True):
        yield start._replace(before=tuple(lines[: -len(LAST) - 1])), transcript[-len(LAST) - 1 :]


def difference(start: Start, kafkas: Sequence[Line], log_dir: Path) -> str | None:
    """What is not Kafka's after our recovery; None if nothing is. log_dir: is made."""
    replayed(LOCAL, str(log_dir), start.before)
    opened, closed, files = kafkas
    failed = opened if "error" in opened else closed
    wanted = {key: failed[key] for key in ("error", "cause") if key in failed}
    found = _recovered(start, log_dir)
    if wanted.get("error") != found.get("error"):
        return f"{start.name}: Kafka {wanted or 'goes on'}, here {found or 'it goes on'}"
    if wanted:
        return None
    left = [line for line in files_below(LOCAL, str(log_dir)) if _is_of_log(line)]
    expected = [line for line in files["result"] if _is_of_log(line)]
    different = [*differences(expected, json.loads(json.dumps(left)))]
    return f"{start.name}: {different[:3]}" if different else None


def _is_of_log(file: Line) -> bool:
    return not file["name"].endswith(_OF_DIRECTORY)


def _recovered(start: Start, log_dir: Path) -> Line:
    version = BY_NAME[versions.chosen().name]
    clock, config = ScriptClock(version), LogConfig()
    for line in start.before:
        if line["op"] in CONFIGURING:
            clock.configure(line["op"], line)
        elif line["op"] == "config":
            with suppress(ConfigError):  # as the script's line that is refused
                config = config.changed(settings_of(line))

    def known(name: str, file: str) -> int:
        there = checkpoint.read(str(log_dir / file)).get(("t", 0), 0)
        return int(start.opening.get(name, there))

    options = LogOptions(
        clock=lambda: clock.now_ms,
        scheduler=clock.scheduler,
        config=config,
        state=LoadingState(
            is_clean=start.opening.get("clean", clean_shutdown.exists(str(log_dir), LOCAL)),
            log_start=known("log_start_offset", checkpoint.LOG_START),
            recovery_point=known("recovery_point", checkpoint.RECOVERY_POINT),
        ),
        producer_settings=clock.producer_settings,
        kafka=version,
    )
    try:
        load_as_kafka(str(log_dir / "t-0"), options)
    except (LogError, OSError) as error:
        return described(error)
    except LogCompactionError as error:
        return {"error": type(error).__name__}
    return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scripts", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="write them for the tests")
    parser.add_argument("--without-kernels", action="store_true", help="batch by batch")
    wanted = parser.parse_args()
    seeds = range(wanted.first_seed, wanted.first_seed + wanted.scripts)
    starts = [start for seed in seeds for start in starts_of(seed)]
    found, ends = [], Counter[str]()
    with tempfile.TemporaryDirectory() as name, kernels_used(not wanted.without_kernels):
        scratch = Path(name)
        told_by_kafka = list(answers(starts))
        if wanted.keep:
            kept.write(SAMPLE, ((s.name, Answer([], s.script, told)) for s, told in told_by_kafka))
        for start, kafkas in told_by_kafka:
            told = difference(start, kafkas, scratch / start.name)
            ends[str(kafkas[0].get("error", "opened"))] += 1
            if told is not None:
                found.append(told)
                print_line(told)
    for end, count in ends.most_common():
        print_line(f"{count:6} in Kafka {end}")
    print_line(f"{len(starts) - len(found)} of {len(starts)} recoveries are Kafka's")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
