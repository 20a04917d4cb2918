"""One log by all sides, in turn: so that whatever the machine does meanwhile falls on all."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import built_logs, cold_side, kafka_side, warm_side
from tests.bench.errors import BenchError
from tests.bench.results import JVM, LogResult, Outcome, Peak, Sample
from tests.bench.scratch import Scratch, settle, time_copy
from tests.bench.workloads import COLD, COPY, KAFKA, WARM, Workload


@dataclass(frozen=True, slots=True)
class Setup:
    """What all logs of a run have in common."""

    scratch: Scratch
    master: str
    repetitions: int
    tell: Callable[[str], None]


def measure(setup: Setup, workload: Workload) -> LogResult:
    """All turns of one log; BenchError if a side does not leave what the first one left."""
    setup.tell(f"{workload.name}: building, unless it is kept from an earlier run")
    log_dir = built_logs.log_dir_of(setup.scratch, workload)
    return _Turns(setup, workload, log_dir).take_all()


class _Turns:
    """The samples of one log as they come in."""

    def __init__(self, setup: Setup, workload: Workload, log_dir: Path) -> None:
        self._setup, self._workload, self._log_dir = setup, workload, log_dir
        self._outcome: Outcome | None = None
        self._samples: dict[str, list[Sample]] = {side: [] for side in workload.sides}
        self._memory: dict[str, dict[str, Peak]] = {}
        self._warm: list[warm_side.WarmTurn] = []
        self._take: dict[str, Callable[[bool], Sample]] = {
            KAFKA: self._kafka,
            COPY: self._copy,
            COLD: self._cold,
            WARM: self._warm_session,
        }

    def take_all(self) -> LogResult:
        self._copy(False)  # not counted: it brings the log into the page cache
        for turn in range(1, self._setup.repetitions + 1):
            for side in self._workload.sides:
                self._tell(f"turn {turn} of {self._setup.repetitions}: {side}")
                settle()
                is_last = turn == self._setup.repetitions
                self._samples[side].append(self._take[side](is_last))
        self._watch_cold()
        assert self._outcome is not None
        return LogResult(
            self._workload.name,
            built_logs.log_bytes(self._log_dir),
            self._outcome,
            self._samples,
            [warm.first_round_seconds for warm in self._warm],
            [warm.cpu_seconds for warm in self._warm],
            [warm.phases for warm in self._warm],
            self._memory,
        )

    def _copy(self, _is_last: bool) -> Sample:
        return time_copy(self._setup.scratch, self._log_dir)

    def _kafka(self, _is_last: bool) -> Sample:
        turn = kafka_side.clean(self._log_dir, warms_up=not self._workload.many_rounds)
        self._hold(turn.outcome, KAFKA)
        resident = self._memory.get(KAFKA, {}).get(JVM, Peak())
        self._memory[KAFKA] = {JVM: resident.or_more(Peak(rss_bytes=turn.peak_rss_bytes))}
        return turn.sample

    def _cold(self, _is_last: bool) -> Sample:
        turn = cold_side.clean(self._setup.scratch, self._log_dir, self._setup.master)
        self._hold(turn.outcome, COLD)
        return turn.sample

    def _warm_session(self, is_last: bool) -> Sample:
        setup = self._setup
        turn = warm_side.clean(setup.scratch, self._log_dir, setup.master, watch_memory=is_last)
        self._hold(turn.outcome, WARM)
        self._warm.append(turn)
        if is_last:
            self._memory[WARM] = turn.memory
        return turn.sample

    def _watch_cold(self) -> None:
        """A run more, whose memory is polled and whose times nobody reads."""
        if COLD in self._workload.sides:
            self._tell("memory of a cold run")
            setup = self._setup
            turn = cold_side.clean(setup.scratch, self._log_dir, setup.master, watch_memory=True)
            self._memory[COLD] = turn.memory

    def _hold(self, outcome: Outcome, side: str) -> None:
        """Against what was left before, Kafka's first of all."""
        self._outcome = expected = self._outcome or outcome
        if self._workload.many_rounds:  # leave delete horizons of tombstones that a later one drops
            expected = expected._replace(bytes_after=outcome.bytes_after)
        if outcome.left != expected.left:
            raise BenchError(f"{self._workload.name}: {side} left {outcome}, not {self._outcome}")
        if self._workload.many_rounds:  # what Kafka tells of is the last of them
            self._outcome = outcome

    def _tell(self, text: str) -> None:
        self._setup.tell(f"{self._workload.name}: {text}")
