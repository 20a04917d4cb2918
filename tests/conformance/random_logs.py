"""Random logs that Kafka's cleaner and ours must leave in the same bytes.

python -m tests.conformance.random_logs [--count 200] [--first-seed N | --seed N …] [--keep DIR]
    [--rounds N] [--map-capacity KEYS] [--large]

Large: of 1.5 MB each and one codec, zstd, lz4, gzip and snappy in turn (large_logs). With rounds,
each log is cleaned that often, the clock moved past all horizons and the checkpoint taken away in
between; with a capacity, the map of every cleaning takes no more keys than that.
Seeds are fresh in each run unless given, and printed. Each fleet of logs is cleaned in one round of
`compactor run`. A failing log's seed and first difference are printed and its files kept; exit 1.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.conformance import fleet
from tests.conformance.fleet import CheckedLog, Fleet, Kafkas
from tests.conformance.large_logs import large_script
from tests.oracle import compare, jars, kafka, versions
from tests.oracle.random_script import ScriptOptions, random_script

PROJECT = Path(__file__).parents[2]
SEEDS = 2**31
DONE, SOME_SET_ASIDE = 0, 4  # exit codes of `compactor run`
FLEET_SIZE = 300  # logs of one directory, cleaned in one round
COUNT = 200


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


def check_fleet(
    seeds: Sequence[int], kinds: Kinds, root: Path, rounds: int = 1
) -> tuple[bool, list[CheckedLog]]:
    """Build, clean, compare, tell what is wrong; True where nothing is."""
    built = build_fleet(seeds, kinds, root)
    right, checked = _check_round(built, kinds)
    for number in range(2, rounds + 1):
        if not right:
            break
        built = built.next_round(built.root / "actual", number, kinds.map_capacity)
        right, found = _check_round(built, kinds)
        checked += found
    return right, checked


def _check_round(built: Fleet, kinds: Kinds) -> tuple[bool, list[CheckedLog]]:
    kafkas = versions.chosen().name
    clean = partial(run_compactor, map_capacity=kinds.map_capacity, kafka=kafkas)
    try:
        whole, checked = built.check(clean, built.root / "actual")
    except RoundFailedError as error:
        _say(str(error))
        return False, []
    for problem in whole:
        _say(f"log directory: {problem}")
    for log in checked:
        if log.problems:
            _tell(built, log)
    return not whole and not any(log.problems for log in checked), checked


def _tell(built: Fleet, log: CheckedLog) -> None:
    seed = log.partition.removeprefix("seed-").rsplit("-", 1)[0]
    more = f" (and {len(log.problems) - 1} more)" if len(log.problems) > 1 else ""
    _say(f"seed {seed}, {log.kafkas} by Kafka: {log.problems[0]}{more}")
    try:
        pair = (built.root / folder / log.partition for folder in ("after", "actual"))
        _say(f"  {compare.first_other_line(*pair) or 'the same batches and records'}")
    except kafka.OracleFailedError as error:
        _say(f"  Kafka cannot read it: {error}")


def _summary(checked: Sequence[CheckedLog], logs: int, seconds: float) -> str:
    """logs: how many there were to be, in all rounds."""
    kafkas = Counter(str(log.kafkas) for log in checked)
    by_kafka = ", ".join(f"{count} {outcome}" for outcome, count in sorted(kafkas.items()))
    where_kafka_failed = [v for v in checked if v.kafkas is Kafkas.FAILED]
    ours = sum(not v.untouched for v in where_kafka_failed)
    extra = f"; of those that Kafka failed on, ours cleaned {ours}" if where_kafka_failed else ""
    lacking = sum(log.lacks_segment for log in checked)
    if lacking:
        extra += f"; {lacking} set aside by ours, since a segment seems to be missing"
    passed = sum(not log.problems for log in checked)
    head = f"{seconds:.0f} s; by Kafka: {by_kafka or 'nothing'}{extra}"
    unbuilt = logs - len(checked)
    if unbuilt:
        head += f"; {unbuilt} not looked at: not to be built, or a round before failed"
    return f"{head}\n{passed} passed, {len(checked) - passed} failed"


def _seeds(args: argparse.Namespace) -> list[int]:
    if args.seed:
        return list(args.seed)
    if args.first_seed is not None:
        return list(range(args.first_seed, args.first_seed + args.count))
    return random.SystemRandom().sample(range(SEEDS), args.count)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="random_logs", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--first-seed", type=int, help="this seed and those after it")
    parser.add_argument("--seed", type=int, action="append", help="only this seed; may be repeated")
    parser.add_argument("--keep", type=Path, help="work here and leave everything")
    either = argparse.BooleanOptionalAction
    parser.add_argument("--txn", action=either, default=True, help="with transactions")
    parser.add_argument("--rounds", type=int, default=1, help="cleanings of each log")
    parser.add_argument("--large", action="store_true", help="of 1.5 MB and one codec")
    parser.add_argument("--map-capacity", type=int, help="keys that the map takes")
    parser.add_argument(
        "--legacy", action=either, default=True, help="with message formats 0 and 1"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    args = _parse(arguments)
    seeds, kinds = _seeds(args), Kinds(args.txn, args.legacy, args.map_capacity, args.large)
    root = args.keep or Path(tempfile.mkdtemp(prefix="conformance-"))
    root.mkdir(parents=True, exist_ok=True)
    _say(f"seeds {' '.join(map(str, seeds))}")
    started, checked, all_right = time.monotonic(), list[CheckedLog](), True
    for at in range(0, len(seeds), FLEET_SIZE):
        part = root / f"fleet-{at // FLEET_SIZE}"
        right, found = check_fleet(seeds[at : at + FLEET_SIZE], kinds, part, args.rounds)
        checked += found
        all_right = all_right and right
        if right and not args.keep:
            for folder in root.glob(f"{part.name}*"):
                shutil.rmtree(folder)
    _say(_summary(checked, len(seeds) * args.rounds, time.monotonic() - started))
    if not all_right:
        _say(f"kept in {root}; again: python -m tests.conformance.random_logs --seed N")
    elif not args.keep:
        shutil.rmtree(root)
    return 0 if all_right else 1


def run_from_shell(arguments: Sequence[str]) -> int | str:
    """What to exit with: a code, or the message that says what the oracle lacks."""
    try:
        return main(arguments)
    except jars.OracleUnavailableError as unavailable:
        return str(unavailable)


if __name__ == "__main__":
    sys.exit(run_from_shell(sys.argv[1:]))
