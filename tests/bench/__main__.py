"""python -m tests.bench: Kafka's cleaner, `cp -r` and ours, in turn, over the same logs.

docs/benchmarks.md says what is measured, and how to read the tables.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleaner_jobs import first_use
from cleaner_jobs.user_cache import cache_dir
from compactor.errors import CleaningFailedError
from compactor.host.java import use_java
from tests.bench import chart, cleanings, engine, fleets, machine, swap, tables, timing
from tests.bench.results import BenchError, Results, from_json, merged, to_json
from tests.bench.scratch import Setup, default_root, open_scratch
from tests.bench.table import PAGES, document, page, write_between_marks
from tests.bench.workloads import (
    CONFIGS,
    ENGINE,
    EXECUTORS,
    EXPLAIN,
    INSPECT,
    LOCAL,
    MANY_LOGS,
    NAMES,
    OPEN,
    PLAN,
    RECOVER,
    SWAP,
    TABLES,
    WARM,
    choose,
)
from tests.oracle.jars import OracleUnavailableError

PAGE = PAGES / "benchmarks.md"
CHART = PAGES / "pictures" / "benchmarks.svg"
REPETITIONS = 4
MASTER = "local[2]"
# by name for --only: fields of the results, and what measures each
CASES: Mapping[str, Mapping[str, Callable[[Setup], Any]]] = {
    PLAN: {
        "plan": lambda setup: fleets.measure(setup, PLAN),
        "configs": lambda setup: fleets.measure(setup, CONFIGS),
        "explain": lambda setup: fleets.measure(setup, EXPLAIN),
    },
    RECOVER: {"recovery": lambda setup: fleets.measure(setup, RECOVER)},
    OPEN: {"opening": lambda setup: fleets.measure(setup, OPEN)},
    SWAP: {"swaps": swap.measure},
    MANY_LOGS: {"many_logs": fleets.measure_many_logs},
    TABLES: {"tables": tables.measure},
    ENGINE: {"engine": engine.measure},
    INSPECT: {
        "inspection": lambda setup: cleanings.inspections(setup, WARM),
        "local_inspection": lambda setup: cleanings.inspections(setup, LOCAL),
    },
    EXECUTORS: {"executors": cleanings.by_executors},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or read what was measured; then show it. Return the exit code."""
    parser = _parser()
    wanted = parser.parse_args(arguments)
    if wanted.write_docs and wanted.quick:
        parser.error("--write-docs: the numbers of a --quick run mean nothing")
    try:
        results = _read(wanted.read) if wanted.read else _measure(wanted)
        sys.stdout.write(document(results))
        if wanted.write_docs:
            if results.quick:
                raise BenchError("--write-docs: the numbers of a --quick run mean nothing")
            _write_docs(results)
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
    add("--write-docs", action="store_true", help="put tables and chart into docs")
    add(
        "--scratch",
        type=Path,
        default=default_root(),
        metavar="DIR",
        help="for logs, kept between runs, and copies of them (default %(default)s)",
    )
    return parser


def tell(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return number


def _measure(wanted: argparse.Namespace) -> Results:
    """Measure everything that is wanted, one after another; what is done is kept as it comes."""
    timing.adopt_orphans()
    repetitions = wanted.repeat or (1 if wanted.quick else REPETITIONS)
    results = Results(machine.facts(wanted.master, repetitions), wanted.quick)
    if machine.is_busy():
        tell("the machine is busy with other things: do not trust what comes")
    _prepare()
    with open_scratch(wanted.scratch) as scratch:
        setup = Setup(scratch, wanted.master, repetitions, tell, wanted.quick)
        for workload in choose(wanted.only, wanted.quick):
            log = cleanings.measure(setup, workload)
            results = _keep(wanted.json, results, logs=(*results.logs, log))
        for name, measures in CASES.items():
            if wanted.only is None or name in wanted.only:
                for field, measure in measures.items():
                    results = _keep(wanted.json, results, **{field: measure(setup)})
    return results


def _prepare() -> None:
    """Do what a machine does once: it is no part of a cold start, and is done by `make setup`."""
    environ = dict(os.environ)
    use_java(environ, cache_dir(environ))
    first_use.prepare(environ, tell)


def _write_docs(results: Results) -> None:
    write_between_marks(PAGE, "bench", page(results))
    if shown := chart.groups(results):
        CHART.write_text(chart.draw(shown), "utf-8")


def _keep(path: Path | None, results: Results, **fields: Any) -> Results:
    results = replace(results, **fields)
    if path is not None:
        path.write_text(to_json(results), "utf-8")
    return results


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
