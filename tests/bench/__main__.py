"""python -m tests.bench: Kafka's cleaner, `cp -r` and ours, in turn, over the same logs.

docs/benchmarks.md tells what is measured, and how to read the tables.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cleaner_jobs.spark import warm_up
from cleaner_jobs.spark.java_cache import cache_dir
from compactor.errors import CleaningFailedError
from compactor.host.java import use_java
from tests.bench import (
    docs,
    engine_side,
    inspect_side,
    machine,
    many_logs_side,
    measured,
    open_side,
    plan_side,
    recover_side,
    swap_side,
    table,
    tables_side,
)
from tests.bench.errors import BenchError
from tests.bench.results import (
    EngineResult,
    FleetResult,
    InspectionResult,
    Results,
    from_json,
    merged,
    to_json,
)
from tests.bench.scratch import Scratch, default_root, open_scratch
from tests.bench.turns import Setup, measure
from tests.bench.workloads import (
    ENGINE,
    GROWTH_LONG,
    INSPECT,
    MANY_LOGS,
    NAMES,
    OPEN,
    PLAN,
    RECOVER,
    SWAP,
    TABLES,
    Fleet,
    ManyLogs,
    choose,
    swap_shapes,
)
from tests.oracle.jars import OracleUnavailableError

REPETITIONS = 3
MASTER = "local[2]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or read what was measured; then show it. The exit code."""
    parser = _parser()
    wanted = parser.parse_args(arguments)
    if wanted.write_docs and wanted.quick:
        parser.error("--write-docs: the numbers of a --quick run mean nothing")
    try:
        results = _read(wanted.read) if wanted.read else _measure(wanted)
        tables = table.document(results)
        sys.stdout.write(tables)
        if wanted.write_docs:
            if results.quick:
                raise BenchError("--write-docs: the numbers of a --quick run mean nothing")
            docs.write(tables)
    except (BenchError, OracleUnavailableError, CleaningFailedError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("bench: interrupted\n")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Time Kafka's cleaner, cp -r and ours in turn; print tables.",
        epilog=f"Names for --only: {', '.join(NAMES)}.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="small logs, one turn: to try the benchmark out")
    add("--only", nargs="+", choices=NAMES, metavar="NAME", help="measure these alone")
    add("--repeat", type=_positive, metavar="N", help=f"turns of each log (default {REPETITIONS})")
    add("--master", default=MASTER, metavar="URL", help="Spark master (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write every sample there, after each log")
    add("--read", type=Path, nargs="+", metavar="FILE", help="measure nothing: show these (--json)")
    add("--write-docs", action="store_true", help="put the tables into docs/benchmarks.md")
    add(
        "--scratch",
        type=Path,
        default=default_root(),
        metavar="DIR",
        help="for logs, kept between runs, and copies of them (default %(default)s)",
    )
    return parser


def tell(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return number


def _measure(wanted: argparse.Namespace) -> Results:
    """Everything that is wanted, one after another; what is done is kept as it comes."""
    measured.adopt_orphans()
    repetitions = wanted.repeat or (1 if wanted.quick else REPETITIONS)
    results = Results(machine.facts(wanted.master, repetitions), wanted.quick)
    if machine.is_busy():
        tell("the machine is busy with other things: do not trust what comes")
    _prepare()
    with open_scratch(wanted.scratch) as scratch:
        setup = Setup(scratch, wanted.master, repetitions, tell)
        for workload in choose(wanted.only, wanted.quick):
            results = replace(results, logs=(*results.logs, measure(setup, workload)))
            _keep(results, wanted.json)
        if wanted.only is None or PLAN in wanted.only:
            results = replace(
                results, plan=_over_fleet(plan_side.measure, PLAN, setup, wanted.quick)
            )
            _keep(results, wanted.json)
        if wanted.only is None or RECOVER in wanted.only:
            recovered = _over_fleet(recover_side.measure, RECOVER, setup, wanted.quick)
            results = replace(results, recovery=recovered)
            _keep(results, wanted.json)
        if wanted.only is None or OPEN in wanted.only:
            opening = _over_fleet(open_side.measure, OPEN, setup, wanted.quick)
            results = replace(results, opening=opening)
            _keep(results, wanted.json)
        if wanted.only is None or SWAP in wanted.only:
            tell(f"{SWAP}: logs of many small segments")
            swaps = swap_side.measure(scratch, swap_shapes(wanted.quick), repetitions)
            results = replace(results, swaps=tuple(swaps))
            _keep(results, wanted.json)
        if wanted.only is None or MANY_LOGS in wanted.only:
            results = replace(results, many_logs=_many_logs(setup, wanted.quick))
            _keep(results, wanted.json)
        if wanted.only is None or TABLES in wanted.only:
            tell(f"{TABLES}: records appended from a table, and read into one")
            records = 200_000 if wanted.quick else 3_000_000
            results = replace(results, tables=tables_side.measure(scratch, records, repetitions))
            _keep(results, wanted.json)
        if wanted.only is None or ENGINE in wanted.only:
            results = replace(results, engine=_engine(setup, wanted.quick))
            _keep(results, wanted.json)
        if wanted.only is None or INSPECT in wanted.only:
            results = replace(results, inspection=_inspection(setup, wanted.quick))
            _keep(results, wanted.json)
    return results


def _prepare() -> None:
    """What a machine does once is no part of a cold start, and has been done by `make setup`."""
    environ = dict(os.environ)
    use_java(environ, cache_dir(environ))
    warm_up.prepare(environ, tell)


def _over_fleet(
    side: Callable[[Scratch, Fleet, int], FleetResult], name: str, setup: Setup, quick: bool
) -> FleetResult:
    fleet = Fleet().quick() if quick else Fleet()
    setup.tell(f"{name}: {fleet.segments:,} segments in {fleet.partitions:,} partitions")
    return side(setup.scratch, fleet, setup.repetitions)


def _many_logs(setup: Setup, quick: bool) -> dict[str, FleetResult]:
    shape = ManyLogs().quick() if quick else ManyLogs()
    setup.tell(f"{MANY_LOGS}: {shape.logs:,} logs of 75 KB")
    return many_logs_side.measure(setup.scratch, shape, setup.master, setup.repetitions)


def _engine(setup: Setup, quick: bool) -> tuple[EngineResult, ...]:
    setup.tell(f"{ENGINE}: append, read, look up, load")
    size = (4, 2_000) if quick else (300, engine_side.LOOKUPS)
    return tuple(engine_side.measure(setup.scratch, *size, setup.repetitions))


def _inspection(setup: Setup, quick: bool) -> InspectionResult:
    [workload] = choose([GROWTH_LONG], quick)
    setup.tell(f"{INSPECT}: {workload.name}, in turn with a dry run")
    return inspect_side.measure(setup.scratch, workload, setup.master, setup.repetitions)


def _keep(results: Results, path: Path | None) -> None:
    if path is not None:
        path.write_text(to_json(results), "utf-8")


def _read(paths: Sequence[Path]) -> Results:
    runs = []
    for path in paths:
        try:
            runs.append(from_json(path.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{path}: {error}") from error
    return merged(runs)


if __name__ == "__main__":
    sys.exit(main())
