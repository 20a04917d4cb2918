"""`python -m tests.stages.held_run STATUS STAGE WORDS…`: `compactor WORDS…`, held at one stage.

When the run comes to STAGE, its name is written to STATUS. The run goes on when there is a file
STATUS.go. A SIGUSR1 breaks all connections of this process.
"""

import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cleaner_jobs import messages
from cleaner_jobs.local.worker_host import Work
from cleaner_jobs.local.worker_pool import WorkerPool, Workers
from cleaner_jobs.spark import spark_session, task_job
from cleaner_jobs.staging import STAGED_MARKER
from compactor.cleaning import cleaner_manager
from compactor.command_line import cli
from compactor.host import log_lines

PLAN, BEFORE_JAVA, JAVA, SESSION, MAP, RESOLVE = (
    "plan",
    "before Java",
    "Java starting",
    "session made",
    "map",
    "resolve",
)
REWRITE, PROOF, SWAP, CHECKPOINT = "rewrite", "proof", "swap", "checkpoint"
REPORT, METRICS = "report", "metrics"
STAGES = (
    *(PLAN, BEFORE_JAVA, JAVA, SESSION, MAP, RESOLVE),
    *(REWRITE, PROOF, SWAP, CHECKPOINT, REPORT, METRICS),
)
REPORT_NAME, METRICS_NAME, LOG_DIR_NAME = "report.json", "metrics.prom", "data"
HOLD_SECONDS = 100.0
_OF_PROGRESS = {"start engine": BEFORE_JAVA, "scan": MAP, "rewrite": REWRITE}


def go_of(status: Path) -> Path:
    """The file that a held run waits for."""
    return status.with_name(f"{status.name}.go")


class Hold:
    """Holds the run at its stage, once."""

    def __init__(self, status: Path, stage: str) -> None:
        self._status, self._stage, self._is_over = status, stage, False

    def come_to(self, stage: str) -> None:
        if stage != self._stage or self._is_over:
            return
        self._is_over = True
        self._status.write_text(stage)
        deadline = time.monotonic() + HOLD_SECONDS
        while not go_of(self._status).exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take audit events: what is opened and renamed shows a stage."""
        if event in ("os.listdir", "os.scandir"):
            if str(arguments[0]).endswith(f"/{LOG_DIR_NAME}"):
                self.come_to(PLAN)
        elif event == "os.rename":
            source = os.fsdecode(arguments[0])
            if STAGED_MARKER in source:
                self.come_to(SWAP)
            elif source.endswith("-checkpoint.tmp"):
                self.come_to(CHECKPOINT)
        elif event == "open" and REPORT_NAME in str(arguments[0]):
            self.come_to(REPORT)

    def before(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls it when the run has been held."""

        def held(*values: Any, **named: Any) -> Any:
            self.come_to(stage)
            return call(*values, **named)

        return held

    def after(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls it, then holds the run."""

        def held(*values: Any, **named: Any) -> Any:
            result = call(*values, **named)
            self.come_to(stage)
            return result

        return held


def break_connections(*_: object) -> None:
    """Shut down every socket of this process."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if stat.S_ISSOCK(os.stat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as connection:
                    connection.shutdown(socket.SHUT_RDWR)


def main() -> int:
    hold = Hold(Path(sys.argv[1]), sys.argv[2])
    signal.signal(signal.SIGUSR1, break_connections)
    enter = log_lines.enter_phase

    def enter_phase(name: str | None) -> None:
        enter(name)
        hold.come_to(_OF_PROGRESS.get(name or "", ""))

    vars(log_lines)["enter_phase"] = enter_phase
    of_session, of_manager = vars(spark_session), vars(cleaner_manager)
    of_jobs, of_ending = vars(task_job), vars(cli)
    rows_of = of_jobs["_rows"]

    def rows(spark: Any, of: tuple[str, str], *rest: Any) -> Any:
        """Hold the job of a stage whose tasks are on disk already."""
        if of[1] == messages.RESOLVE:
            hold.come_to(RESOLVE)
        return rows_of(spark, of, *rest)

    of_jobs["_rows"] = rows
    give = WorkerPool.give

    def give_held(pool: WorkerPool, work: Work) -> None:
        if work.stage == messages.RESOLVE:
            hold.come_to(RESOLVE)
        give(pool, work)

    WorkerPool.give = give_held  # type: ignore[assignment,method-assign]
    Workers.pool = hold.after(SESSION, Workers.pool)  # type: ignore[method-assign]
    of_ending["_write_metrics"] = hold.before(METRICS, of_ending["_write_metrics"])
    of_session["start_spark"] = hold.after(SESSION, of_session["start_spark"])
    of_manager["_prove_group"] = hold.before(PROOF, of_manager["_prove_group"])
    sys.addaudithook(hold.hear)
    return cli.main(sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
