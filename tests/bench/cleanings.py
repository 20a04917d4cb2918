"""One log by all sides in turn, so that whatever the machine does meanwhile falls on all.

- Kafka's cleaner, in its own process, one thread, with a broker's default buffers. A turn cleans
  two fresh copies; the first warms Java up and is not counted, as a broker's cleaner thread has
  long been warm. A log that takes Kafka many rounds is cleaned once: minutes of work leave nothing
  cold. The oracle reads a copy through, then times the cleaning alone; CPU seconds are those of
  its process meanwhile.
- `cp -r`.
- Ours, cold: a whole `compactor` process, from the shell's prompt to the report.
- Ours, warm: the second round in one session. A turn is a process of its own: it starts its engine,
  cleans a first copy, which is not counted, and then the one that is. Where memory is wanted, a
  third round follows whose times nobody reads, because polling memory costs time.

Both are taken on Spark (`cold`, `warm`) and in processes of this host (`local-cold`, `local`).
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from storage.codecs.compression import Codec, differing_builds, installed_builds
from storage.kafka_versions import BY_NAME
from tests.bench import scratch
from tests.bench.results import (
    ALL,
    COUNT,
    JVM,
    MERGE,
    RESOLVE,
    SCAN,
    BenchError,
    InspectionResult,
    LogResult,
    Outcome,
    Peak,
    Sample,
)
from tests.bench.scratch import Setup
from tests.bench.session import CLEAN, INSPECT, Request
from tests.bench.timing import module, run_session, run_to_success
from tests.bench.workloads import (
    COLD,
    COPY,
    EXECUTOR_COUNTS,
    EXECUTORS,
    GROWTH_LONG,
    KAFKA,
    LOCAL,
    LOCAL_COLD,
    NOW_MS,
    TOPIC_CONFIG,
    TOPIC_PARTITION,
    WARM,
    Workload,
    choose,
)
from tests.bench.workloads import INSPECT as INSPECT_NAME
from tests.oracle import kafka, versions

CODECS = {codec.name.lower(): codec for codec in Codec}
COUNTED_ROUND = 2  # of a warm session
EXECUTOR_MIB = 1024
CLOCK = ("--as-of", str(NOW_MS), "--any-clock")


class Turn(NamedTuple):
    """A turn of one side."""

    sample: Sample
    outcome: Outcome | None = None  # a copy has none
    memory: Mapping[str, Peak] = {}  # by kind of process
    first_round_seconds: float = 0  # and the other two: of a warm session
    cpu_seconds: Mapping[str, float] = {}  # by kind of process
    phases: Mapping[str, float] = {}  # seconds


def measure(setup: Setup, workload: Workload) -> LogResult:
    """Take all turns of one log; BenchError if a side does not leave what the first one left."""

    def tell(text: str) -> None:
        setup.tell(f"{workload.name}: {text}")

    tell("building, unless it is kept from an earlier run")
    log_dir = scratch.built(setup.scratch, workload)
    turns: dict[str, list[Turn]] = {side: [] for side in workload.sides}
    outcomes: dict[str, Outcome] = {}  # by side, the last of each
    SIDES[COPY](setup, workload, log_dir, False)  # it brings the log into the page cache
    for number in range(1, setup.repetitions + 1):
        for side in workload.sides:
            tell(f"turn {number} of {setup.repetitions}: {side}")
            scratch.settle()
            turn = SIDES[side](setup, workload, log_dir, number == setup.repetitions)
            turns[side].append(turn)
            if turn.outcome:
                _require_same(workload, side, turn.outcome, outcomes)
                outcomes[side] = turn.outcome
    memory = {side: found for side, taken in turns.items() if (found := _largest(taken))}
    for side in (COLD, LOCAL_COLD):
        if side in workload.sides:
            tell(f"memory of a run, {side}")
            memory[side] = dict(cold(setup, side, log_dir, watch_memory=True).memory)
    on_spark, in_processes = turns.get(WARM, []), turns.get(LOCAL, [])
    return LogResult(
        workload.name,
        scratch.log_bytes(log_dir),
        [*outcomes.values()][-1 if workload.many_rounds else 0],
        {side: [turn.sample for turn in taken] for side, taken in turns.items()},
        first_rounds=[turn.first_round_seconds for turn in on_spark],
        warm_cpu_seconds=[dict(turn.cpu_seconds) for turn in on_spark],
        warm_phases=[dict(turn.phases) for turn in on_spark],
        memory=memory,
        local_first_rounds=[turn.first_round_seconds for turn in in_processes],
        local_cpu_seconds=[dict(turn.cpu_seconds) for turn in in_processes],
        local_phases=[dict(turn.phases) for turn in in_processes],
    )


def _require_same(
    workload: Workload, side: str, outcome: Outcome, others: Mapping[str, Outcome]
) -> None:
    """Raise BenchError where a side left something else than one before it."""
    for other, before in others.items():
        held = before
        if KAFKA in (side, other) and not _leaves_kafkas_bytes(workload):
            held = before._replace(bytes_after=outcome.bytes_after)
        if (outcome.bytes_after, outcome.records_kept) != (held.bytes_after, held.records_kept):
            raise BenchError(f"{workload.name}: {side} left {outcome}, not {before}")


def _leaves_kafkas_bytes(workload: Workload) -> bool:
    """Whether ours leave as many bytes as this Kafka.

    Many rounds leave delete horizons of tombstones that a later one drops, and Kafka reports the
    last of them alone. A codec may be of another build than this Kafka's.
    """
    differing = differing_builds(BY_NAME[versions.chosen().name], installed_builds())
    return not workload.many_rounds and CODECS[workload.codec] not in differing


def _largest(turns: list[Turn]) -> dict[str, Peak]:
    peaks: dict[str, Peak] = {}
    for turn in turns:
        for kind, peak in turn.memory.items():
            peaks[kind] = peaks.get(kind, Peak()).or_more(peak)
    return peaks


def kafkas(workload: Workload, log_dir: Path) -> Turn:
    copies = 1 if workload.many_rounds else 2
    configs = [
        word for name, value in TOPIC_CONFIG.items() for word in ("--config", f"{name}={value}")
    ]
    repeat = ["--repeat", str(copies), "--now", str(NOW_MS)]
    argv = kafka.command("bench", log_dir, TOPIC_PARTITION, *repeat, *configs)
    answers = run_session(argv, copies)
    result = answers.lines[-1]
    sample = Sample(result["seconds"], result["cpu_seconds"])
    return Turn(sample, kafkas_outcome(result), {JVM: Peak(rss_bytes=answers.peak_rss_bytes)})


def kafkas_outcome(result: Mapping[str, Any]) -> Outcome:
    """Read a line of `oracle bench`; BenchError unless Kafka cleaned all that there was."""
    if not result["cleaned"] or result["end_offset"] != result["first_uncleanable_offset"]:
        raise BenchError(f"Kafka did not clean the whole log: {json.dumps(result)}")
    return Outcome(result["bytes_written"], result["messages_read"], result["messages_written"])


def copied(setup: Setup, log_dir: Path) -> Turn:
    target = setup.scratch.copies / "log"
    sample = run_to_success(scratch.copy_command(log_dir, target)).sample
    shutil.rmtree(target)
    return Turn(sample)


def cold(setup: Setup, side: str, log_dir: Path, watch_memory: bool = False) -> Turn:
    with scratch.fresh_copy(setup.scratch, log_dir) as copy:
        done = run_to_success(run_command(setup, copy, side=side), watch_memory)
    return Turn(done.sample, our_outcome(done.answer()["logs"]), done.memory)


def warm(setup: Setup, side: str, log_dir: Path, watch_memory: bool) -> Turn:
    rounds = COUNTED_ROUND + watch_memory
    request = _request(setup, side, log_dir, rounds, CLEAN)
    answers = request.run(watched_after=COUNTED_ROUND)
    first, second, *_ = answers.lines
    used = second["cpu_seconds"]
    return Turn(
        Sample(second["seconds"], used.pop(ALL)),
        our_outcome(second["logs"]),
        answers.memory if watch_memory else {},
        first["seconds"],
        used,
        second["phases"],
    )


def by_executors(setup: Setup) -> dict[str, list[Sample]]:
    """Clean one log on clusters of so many executors, and in processes of this host, in turn."""
    [workload] = choose([GROWTH_LONG], setup.is_quick)
    log_dir = scratch.built(setup.scratch, workload)
    masters: dict[str, str | None] = {
        str(count): f"local-cluster[{count},1,{EXECUTOR_MIB}]" for count in EXECUTOR_COUNTS
    }
    masters[LOCAL] = None
    taken: dict[str, list[Sample]] = {name: [] for name in masters}
    outcomes: dict[str, Outcome] = {}
    for number in range(1, setup.repetitions + 1):
        for name, master in masters.items():
            setup.tell(f"{EXECUTORS}: turn {number} of {setup.repetitions}: {name}")
            scratch.settle()
            place = str(setup.scratch.root)
            request = Request(str(log_dir), place, master, COUNTED_ROUND, CLEAN)
            *_, counted = request.run(watched_after=COUNTED_ROUND).lines
            outcome = our_outcome(counted["logs"])
            _require_same(workload, name, outcome, outcomes)
            outcomes[name] = outcome
            taken[name].append(Sample(counted["seconds"], counted["cpu_seconds"][ALL]))
    return taken


def _request(setup: Setup, side: str, log_dir: Path, turns: int, what: str) -> Request:
    master = setup.master if side == WARM else None
    return Request(str(log_dir), str(setup.scratch.root), master, turns, what)


SIDES: dict[str, Callable[[Setup, Workload, Path, bool], Turn]] = {  # the last turn is the last
    KAFKA: lambda _setup, workload, log_dir, _is_last: kafkas(workload, log_dir),
    COPY: lambda setup, _workload, log_dir, _is_last: copied(setup, log_dir),
    COLD: lambda setup, _workload, log_dir, _is_last: cold(setup, COLD, log_dir),
    WARM: lambda setup, _workload, log_dir, is_last: warm(setup, WARM, log_dir, is_last),
    LOCAL_COLD: lambda setup, _workload, log_dir, _is_last: cold(setup, LOCAL_COLD, log_dir),
    LOCAL: lambda setup, _workload, log_dir, is_last: warm(setup, LOCAL, log_dir, is_last),
}


def command(verb: str, log_dir: Path, *options: str) -> list[str]:
    """Return a command line that has the clock and configuration of every side, for all logs."""
    return command_of_settings(verb, log_dir, *CLOCK, "--include", ".*", *options)


def command_of_settings(verb: str, log_dir: Path, *words: str) -> list[str]:
    """Return a command line that has the configuration of every side."""
    settings = [
        word for name, value in TOPIC_CONFIG.items() for word in ("--set", f"{name}={value}")
    ]
    return module("compactor", verb, str(log_dir), *settings, *words)


def run_command(setup: Setup, log_dir: Path, *options: str, side: str = COLD) -> list[str]:
    engine = ["--engine", "local"] if side == LOCAL_COLD else ["--master", setup.master]
    places = ["--work-dir", str(setup.scratch.work), *engine]
    return command("run", log_dir, *places, "--format", "json", *options)


def our_outcome(logs: list[dict[str, Any]]) -> Outcome:
    """Read the logs of a report, which are one; BenchError unless it was cleaned."""
    (log,) = logs
    if log["status"] != "cleaned":
        raise BenchError(f"ours did not clean the log: {log['status']}, {log['reason']}")
    return Outcome(log["bytes_after"], log["records"]["read"], log["records"]["kept"])


def inspections(setup: Setup, side: str) -> InspectionResult:
    """Take inspections, each in turn with a dry run; the last turn is for its memory alone.

    side: WARM or LOCAL.
    """
    [workload] = choose([GROWTH_LONG], setup.is_quick)
    setup.tell(f"{INSPECT_NAME}: {workload.name}, in turn with a dry run: {side}")
    log_dir = scratch.built(setup.scratch, workload)
    counted = slice(1, 1 + setup.repetitions)
    turns = counted.stop + 1
    request = _request(setup, side, log_dir, turns, INSPECT)
    answers = request.run(watched_after=counted.stop)
    used = {
        stage: [turn[stage] for turn in answers.lines[counted]]
        for stage in (COUNT, MERGE, SCAN, RESOLVE)
    }
    return InspectionResult(workload.name, used, answers.memory)
