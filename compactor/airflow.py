"""An operator for Airflow 3 that runs the compactor's command and reports as Airflow's tasks do.

It imports nothing but Airflow and starts the command in a process of its own, so that the
requirements of this package and those of Airflow never meet: install it in Airflow's environment
without them (`pip install --no-deps log-compactor`), and in an environment of its own with them.

| exit code of the command | state of the task |
|---|---|
| 0 | success; skipped if nothing was to be done |
| 1, 129, 130, 143: failed, interrupted | failed, and tried again if the task has retries |
| 2: wrong usage or configuration | failed, not tried again |
| 3: refused, another run or a broker is at work | rescheduled; failed after `reschedule_for` |
| 3: refused for any other reason | failed, and tried again if the task has retries |
| 4: some logs failed or were set aside | failed, not tried again; the error has the list |
| 5: a condition of --fail-if holds | failed, not tried again; the error has the logs |

The command's summary goes to XCom, whatever it prints to the task's log.
"""

import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import IO, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

_SHOWN_LOGS = 20
_AT_WORK = ("lock-held", "broker-running")
_WITHOUT_REPORT = ("dump", "log move", "log offsets", "log read")
_FOLDER = "compactor-airflow-"
_OWNER = "owner"  # as in the work directory of a run, which removes what a dead task left, too
_BAD_LOGS = ("failed", "set-aside")


class CompactorOperator(BaseOperator):  # type: ignore[misc]  # checked without Airflow
    """Run a command of the compactor on log directories that this worker sees.

    Spark runs the tasks of a run or an inspection, unless the options name an engine or a master.

    log_dirs: of one broker. command: run, plan, verify or another, also of two words (`log read`).
    options: further words of the command line. compactor: the executable, with words before the
    command if it takes some (`spark-submit --master … ENTRY_FILE`). report: a file that the report
    is to be left in, or several, one of each form. reschedule_after: how long to wait where
    somebody else is at work. reschedule_for: how long the task is put off at most, from the first
    time on; then it fails, so that a broker which was left running does not block every later run
    in silence. stop_timeout: how long a run that is to end may take to end in order; then it is
    killed, and the next run settles what it left. All strings are templates.
    """

    template_fields: Sequence[str] = (
        "log_dirs", "command", "options", "compactor", "report", "env",
    )  # fmt: skip
    template_fields_renderers = {"options": "json", "env": "json"}  # noqa: RUF012
    reschedule = True  # so that Airflow waits until the time that AirflowRescheduleException names

    def __init__(
        self,
        *,
        log_dirs: str | Sequence[str],
        command: str = "run",
        options: str | Sequence[str] = (),
        compactor: str | Sequence[str] = "compactor",
        report: str | Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        reschedule_after: timedelta = timedelta(minutes=10),
        reschedule_for: timedelta = timedelta(hours=6),
        stop_timeout: timedelta = timedelta(minutes=5),
        skip_if_nothing_to_do: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.log_dirs = log_dirs
        self.command = command
        self.options = options
        self.compactor = compactor
        self.report = report
        self.env = env
        self.reschedule_after = reschedule_after
        self.reschedule_for = reschedule_for
        self.stop_timeout = stop_timeout
        self.skip_if_nothing_to_do = skip_if_nothing_to_do
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Return the summary of the command; end otherwise as the table of this module says."""
        _remove_left_folders()
        with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder, _owned(folder):
            words, reports = self._words(), _paths(self.report)
            if not any(map(_is_json, reports)):  # one that this task reads
                reports.append(os.path.join(folder, "report.json"))
            if " ".join(_list(self.command)) not in _WITHOUT_REPORT:
                words += [word for report in reports for word in ("--report", report)]
            code, summary = self._run(words)
            if code == 3 and summary.get("reason_code") in _AT_WORK:
                self._put_off(context, str(summary.get("error")))
            return self._judge(code, summary, _read(next(filter(_is_json, reports))))

    def on_kill(self) -> None:
        """Let the run end in order: it stops at the next safe point, and says what it has done."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        self.log.info("Ending the command in order, for up to %s", self.stop_timeout)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(self.stop_timeout.total_seconds())
        except subprocess.TimeoutExpired:
            self.log.warning("It has not ended: killed. The next run settles what it left")
            process.kill()

    def _words(self) -> list[str]:
        command, options = _list(self.command), _list(self.options)
        of_engine = [word.partition("=")[0] for word in options]
        if command[-1:] in (["run"], ["inspect"]) and not {"--engine", "--master"} & {*of_engine}:
            options = ["--engine", "spark", *options]
        return [*_list(self.compactor), *command, *_list(self.log_dirs), *options]

    def _run(self, words: list[str]) -> tuple[int, dict[str, Any]]:
        """Exit code, and the last line of standard output: the summary; {} where it is none."""
        self.log.info("Running %s", shlex.join(words))
        last = ""
        try:
            self._process = process = subprocess.Popen(
                words,
                env=None if self.env is None else {**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="backslashreplace",
            )
        except OSError as error:
            raise AirflowFailException(f"{words[0]}: {error.strerror}") from error
        assert process.stdout is not None and process.stderr is not None
        others = threading.Thread(target=self._log_lines, args=(process.stderr,))
        others.start()
        try:
            for line in process.stdout:
                last = line.rstrip("\n")
                self.log.info("%s", last)
            code = process.wait()
        finally:  # a task that ran out of its time, for example
            self.on_kill()
            others.join()
        with suppress(ValueError):
            summary = json.loads(last)
            if isinstance(summary, dict):
                return code, summary
        return code, {}

    def _log_lines(self, lines: IO[str]) -> None:
        for line in lines:
            self.log.info("%s", line.rstrip("\n"))

    def _put_off(self, context: Any, error: str) -> None:
        """Reschedule the task, or fail it once it has been put off for too long."""
        self.log.info("Somebody else is at work: %s", error)
        instance, now = context.get("ti"), datetime.now(UTC)
        first = instance.get_first_reschedule_date(context) if instance else None
        if first is not None and now + self.reschedule_after > first + self.reschedule_for:
            raise AirflowFailException(f"Put off since {first:%Y-%m-%d %H:%M} UTC: {error}")
        raise AirflowRescheduleException(now + self.reschedule_after)

    def _judge(self, code: int, summary: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
        reason = summary.get("reason_code")
        error = summary.get("error") or summary.get("status") or "it said nothing of why"
        if code == 0:
            if reason == "nothing-to-do" and self.skip_if_nothing_to_do:
                raise AirflowSkipException("Nothing was to be done")
            return summary
        if code == 2:
            raise AirflowFailException(f"Wrong usage or configuration: {error}")
        if code == 4:
            raise AirflowFailException("\n".join(("Not all is well:", *_bad_logs(report))))
        if code == 5:
            raise AirflowFailException("\n".join(("A condition holds:", *_conditions(summary))))
        what = "Refused" if code == 3 else "Failed"
        raise AirflowException(f"{what} with exit code {code} ({reason}): {error}")


@contextmanager
def _owned(folder: str) -> Iterator[None]:
    """Hold a lock in the folder, which ends with this process."""
    with open(os.path.join(folder, _OWNER), "w", encoding="utf-8") as file:
        with suppress(OSError):  # a file system without locks: nobody will remove it
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(socket.gethostname())
            file.flush()
        yield


def _remove_left_folders() -> None:
    """Remove the folders of tasks of this user on this host whose worker was killed."""
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(_FOLDER) and _is_left(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_left(folder: "os.DirEntry[str]") -> bool:
    with suppress(OSError):
        of_us = folder.stat(follow_symlinks=False).st_uid == os.geteuid()
        if not of_us or not folder.is_dir(follow_symlinks=False):
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(os.path.join(folder.path, _OWNER), flags), encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file.read() == socket.gethostname()
    return False


def _list(words: str | Sequence[str]) -> list[str]:
    return shlex.split(words) if isinstance(words, str) else list(words)


def _paths(report: str | Sequence[str] | None) -> list[str]:
    return [report] if isinstance(report, str) else list(report or ())


def _is_json(report: str) -> bool:
    return report.lower().endswith(".json")


def _read(report: str) -> dict[str, Any]:
    """{} where the command ended before it wrote one."""
    try:
        with open(report, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _bad_logs(report: dict[str, Any]) -> list[str]:
    logs = [*report.get("logs", ()), *report.get("not_taken", ())]
    lines = [
        f"{log['topic']}-{log['partition']} {log['status']}: {log.get('reason')}"
        for log in logs
        if log.get("status") in _BAD_LOGS
    ]
    return _at_most(lines or ["see the log above"])


def _conditions(summary: dict[str, Any]) -> list[str]:
    lines = []
    for met in summary.get("conditions_met", ()):
        lines.append(met["condition"])
        lines += _at_most([f"  {log['topic']}-{log['partition']}" for log in met["logs"]])
    return lines


def _at_most(lines: list[str]) -> list[str]:
    left = len(lines) - _SHOWN_LOGS
    return [*lines[:_SHOWN_LOGS], f"… and {left} more"] if left > 0 else lines
