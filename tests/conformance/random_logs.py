"""Random logs that Kafka's cleaner and ours must leave in the same bytes.

Large: of 1.5 MB each and one codec, zstd, lz4, gzip and snappy in turn (large_logs). With rounds,
each log is cleaned that often, the clock moved past all horizons and the checkpoint taken away in
between; with a capacity, the map of every cleaning takes no more keys than that. Each fleet of logs
is cleaned in one round of `compactor run`.
"""

import shutil
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.campaign import Case, Options, Tried
from tests.conformance import fleet
from tests.conformance.fleet import CheckedLog, Fleet, Kafkas
from tests.conformance.large_logs import large_script
from tests.oracle import compare, kafka, versions
from tests.oracle.random_script import ScriptOptions, random_script

PROJECT = Path(__file__).parents[2]
DONE, SOME_SET_ASIDE = 0, 4  # exit codes of `compactor run`
FLEET_SIZE = 300  # logs of one directory, cleaned in one round


class RoundFailedError(Exception):
    """`compactor run` ended with an exit code that says it did not do its work."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which random logs are asked for."""

    txn: bool
    legacy: bool
    map_capacity: int | None = None
    large: bool = False


def run_compactor(
    log_dir: Path,
    topic_configs: Path,
    now_ms: int,
    map_capacity: int | None = None,
    kafka: str = "4.3",
) -> None:
    """One round in a process of its own; what it printed is kept beside the log directory."""
    if map_capacity is None:
        options = ["--topic-configs", str(topic_configs), "--as-of", str(now_ms)]
        options += ["--kafka", kafka, "--any-clock", "--drop-null-keys"]  # as Kafka's cleaner does
        words = ["compactor", "run", str(log_dir), *options]
    else:
        limited = map(str, (map_capacity, log_dir, topic_configs, now_ms, kafka))
        words = ["tests.conformance.limited_round", *limited]
    argv = [sys.executable, "-m", *words]
    printed = log_dir.with_name(f"{log_dir.name}.out")
    with printed.open("w") as out:
        done = subprocess.run(argv, cwd=PROJECT, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode not in (DONE, SOME_SET_ASIDE):
        tail = printed.read_text()[-4000:]
        raise RoundFailedError(f"compactor run ended with {done.returncode}:\n{tail}")


def build_fleet(seeds: Sequence[int], kinds: Kinds, root: Path) -> Fleet:
    scripts = []
    for seed in seeds:
        name = f"seed-{seed}"
        options = ScriptOptions(topic=name, txn=kinds.txn, legacy=kinds.legacy)
        random_one = random_script(seed, options) if not kinds.large else large_script(seed, name)
        scripts.append((name, random_one))
    return fleet.build(scripts, root, kinds.map_capacity)


OPTIONS: Options = {
    "--keep": {"type": Path, "help": "work here and leave everything"},
    "--no-txn": {"action": "store_true", "help": "without transactions"},
    "--no-legacy": {"action": "store_true", "help": "without message formats 0 and 1"},
    "--rounds": {"type": int, "default": 1, "help": "cleanings of each log"},
    "--large": {"action": "store_true", "help": "of 1.5 MB and one codec"},
    "--map-capacity": {"type": int, "help": "keys that the map takes"},
}


def cases(wanted: Namespace, scratch: Path, group: str) -> Iterator[Case]:
    """Yield the logs of all seeds, a fleet at a time."""
    kinds = Kinds(not wanted.no_txn, not wanted.no_legacy, wanted.map_capacity, wanted.large)
    root = wanted.keep or scratch
    for at in range(0, len(wanted.seeds), FLEET_SIZE):
        seeds = wanted.seeds[at : at + FLEET_SIZE]
        attempt = partial(_tried, seeds, kinds, root / f"fleet-{seeds[0]}", wanted)
        yield Case(f"seeds from {seeds[0]}", attempt, group)


def _tried(seeds: Sequence[int], kinds: Kinds, root: Path, wanted: Namespace) -> Tried:
    """Build, clean and compare a fleet, as often as there are rounds."""
    counts, problems = Counter[str](), list[str]()
    clean = partial(run_compactor, map_capacity=kinds.map_capacity, kafka=versions.chosen().name)
    built = build_fleet(seeds, kinds, root)
    for number in range(1, wanted.rounds + 1):
        if number > 1:
            built = built.next_round(built.root / "actual", number, kinds.map_capacity)
        try:
            whole, checked = built.check(clean, built.root / "actual")
        except RoundFailedError as error:
            problems.append(str(error))
            break
        problems += [f"log directory: {problem}" for problem in whole]
        problems += [_told(built, log) for log in checked if log.problems]
        for log in checked:
            counts[f"logs {log.kafkas} by Kafka"] += 1
            counts["logs that Kafka failed on, and ours cleaned"] += (
                log.kafkas is Kafkas.FAILED and not log.untouched
            )
            counts["logs set aside by ours, since a segment seems to be missing"] += (
                log.lacks_segment
            )
        counts["logs that were not to be built"] += len(seeds) - len(checked)
        if problems:
            break
    for folder in () if wanted.keep else root.parent.glob(f"{root.name}*"):
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    return Tried(problems, +counts, cases=len(seeds))


def _told(built: Fleet, log: CheckedLog) -> str:
    seed = log.partition.removeprefix("seed-").rsplit("-", 1)[0]
    more = f" (and {len(log.problems) - 1} more)" if len(log.problems) > 1 else ""
    told = f"seed {seed}, {log.kafkas} by Kafka: {log.problems[0]}{more}"
    try:
        pair = (built.root / folder / log.partition for folder in ("after", "actual"))
        return f"{told}\n  {compare.first_other_line(*pair) or 'the same batches and records'}"
    except kafka.OracleFailedError as error:
        return f"{told}\n  Kafka cannot read it: {error}"
