"""The program itself: in this process with a session that is shared, or in one of its own."""

import contextlib
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from compactor.cleaning import cleaner_manager
from compactor.cleaning.cleaner_manager import RunSettings
from compactor.command_line import cli
from compactor.host.progress import ProgressSink
from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan
from tests.end_to_end.bad_input_tasks import Stall, misbehaving, misbehaving_workers

FIRST_SWAP = "first swap"  # of the names of stages
HAND_OVER = "hand-over"  # of the first job, to the thread that waits for it
COMPACTED = (
    *("--include", ".*", "--set", "cleanup.policy=compact"),
    *("--set", "min.cleanable.dirty.ratio=0"),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, and what it said; the report without its last line is in `document`."""

    code: int
    document: dict[str, Any]
    error: str  # standard error

    @property
    def logs(self) -> dict[str, dict[str, Any]]:
        """What the report says of each log, by topic."""
        return {log["topic"]: log for log in self.document["logs"]}

    @property
    def last_error(self) -> str:
        return self.error.splitlines()[-1]


class _Hooks:
    """Passes progress on, and does something when a stage begins, or the first swap."""

    def __init__(self, sink: ProgressSink, before: Mapping[str, Callable[[], object]]) -> None:
        self._sink, self._before = sink, dict(before)

    def _begin(self, name: str) -> None:
        self._before.pop(name, lambda: None)()

    def stage(self, name: str, total: int) -> None:
        self._sink.stage(name, total)
        self._begin(name)

    def advance(self, done: int) -> None:
        self._sink.advance(done)

    def swapped(self, groups: int) -> None:
        self._sink.swapped(groups)
        self._begin(FIRST_SWAP)

    def message(self, text: str, log: str | None = None) -> None:
        self._sink.message(text, log)


@dataclass(frozen=True, slots=True)
class Program:
    """`compactor` with a Spark session that is there already."""

    spark: SparkSession
    work_dir: Path
    before: dict[str, Callable[[], object]] = field(default_factory=dict)  # by stage

    def run(self, *words: object) -> Ended:
        """`compactor run` over compacted topics; the whole report is on its standard output."""
        run_round = cleaner_manager.run_round

        def with_session(
            plan: RoundPlan, settings: RunSettings, progress: ProgressSink
        ) -> CleaningReport:
            options = replace(settings.options, session=self.spark)
            on_spark = replace(settings, options=options, chosen=None)
            return run_round(plan, on_spark, _Hooks(progress, self.before))

        argv = ["run", *map(str, words), *COMPACTED, "--format", "json"]
        argv += ["--work-dir", str(self.work_dir)]
        out, error = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(error),
        ):
            patch.setattr(cleaner_manager, "run_round", with_session)
            code = cli.main(argv)
        assert "Traceback" not in error.getvalue()
        return Ended(code, json.loads(out.getvalue()), error.getvalue())


@contextlib.contextmanager
def _java_awaited_to_die(mark: str) -> Iterator[None]:
    """The thread of a job begins with a Java that was there a moment before."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def without_java(thread: threading.Thread) -> None:
        if thread.name == "spark job":
            Path(mark).touch()
            gateway: Any = SparkContext._gateway
            gateway.proc.wait()
        begin(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "_bootstrap_inner", without_java)
        yield


def main() -> int:
    """STAGE MARK PARTITIONS WORDS…: the command line, with tasks that stall in that stage."""
    stage, mark, partitions, *words = sys.argv[1:]
    if "local" in words:
        with misbehaving_workers(stage, Stall(tuple(partitions.split(":")), mark)):
            return cli.main(words)
    if stage == HAND_OVER:
        with _java_awaited_to_die(mark):
            return cli.main(words)
    with misbehaving(stage, Stall(tuple(partitions.split(":")), mark)):
        return cli.main(words)


if __name__ == "__main__":
    sys.exit(main())
