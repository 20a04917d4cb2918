"""A script of operations on one log, or on a log manager, done line by line.

The clock stands still but for the script's own lines, nothing runs beside it, and so the same
script gives the same transcript and the same files: those of Kafka's own engine, which is what a
replay is for.
"""

import os
from collections.abc import Iterable, Iterator

from storage.errors import ConfigError
from storage.files.files import Files
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.errors import LogError
from tests.engine.replay.many_logs import ManyLogs
from tests.engine.replay.one_log import OneLog
from tests.engine.replay.script_cleaning import CleanerMaker, ScriptCleaning
from tests.engine.replay.script_clock import CONFIGURING, ScriptClock
from tests.engine.replay.script_values import Line
from tests.engine.replay.transcript import described


class Replay:
    """A log directory, or several, and the script's clock."""

    def __init__(
        self,
        files: Files,
        log_dir: str,
        make_cleaner: CleanerMaker,
        kafka: KafkaVersion = NEWEST,
    ) -> None:
        self._files, self._log_dir = files, os.path.abspath(log_dir)
        self._clock = ScriptClock(kafka)
        if not files.is_directory(self._log_dir):
            files.make_directory(self._log_dir)
        self._cleaning = ScriptCleaning(files, make_cleaner)
        self._scripted: OneLog | ManyLogs | None = None

    def lines(self, script: Iterable[Line | None]) -> Iterator[Line]:
        """Do the lines of a script, and yield those of its transcript. None: a line to pass over.

        What is open after the last line is let go of as it is.
        """
        for number, line in enumerate(script, 1):
            if line is not None:
                if self._scripted is None:
                    kind = ManyLogs if line["op"] == "manager" else OneLog
                    self._scripted = kind(self._files, self._log_dir, self._clock, self._cleaning)
                yield self._done(self._scripted, number, line)
        if self._scripted is not None and self._scripted.is_open:
            self._scripted.crash()

    def _done(self, scripted: OneLog | ManyLogs, number: int, line: Line) -> Line:
        op = line["op"]
        resolved: Line = {}
        outcome: Line
        try:
            if op in CONFIGURING:
                self._clock.configure(op, line)
                outcome = {"result": None}
            else:
                outcome = {"result": scripted.perform(op, line, resolved)}
        except (LogError, ConfigError, OSError) as error:
            outcome = described(error)
        told = {"n": number, "op": op} | ({"resolved": resolved} if resolved else {})
        return told | outcome | scripted.told()
