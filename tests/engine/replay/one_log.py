"""A script of one log in a log directory: how it is opened, closed, lost and damaged."""

import os
from collections.abc import Callable
from typing import Any

from storage.files.files import Files, remove_if_exists
from storage.formats import checkpoint, clean_shutdown
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.log.loading import LoadingState
from storage.log.log import Log, LogOptions
from storage.log.log_config import LogConfig
from tests.engine.replay.log_operations import LogOperations
from tests.engine.replay.script_cleaning import ScriptCleaning
from tests.engine.replay.script_clock import ScriptClock
from tests.engine.replay.script_damage import damage
from tests.engine.replay.script_values import ClosedError, Line, OpenError, settings_of
from tests.engine.replay.transcript import files_below, state_of


class OneLog:
    """One log in a log directory."""

    def __init__(
        self, files: Files, log_dir: str, clock: ScriptClock, cleaning: ScriptCleaning
    ) -> None:
        self._files, self._log_dir, self._clock = files, log_dir, clock
        self._operations = LogOperations(clock, cleaning)
        self._config = LogConfig()
        self._partition = ("t", 0)
        self._log: Log | None = None

    @property
    def _partition_dir(self) -> str:
        return os.path.join(self._log_dir, "{}-{}".format(*self._partition))

    def perform(self, op: str, line: Line, resolved: Line) -> Any:
        if op in _LIFE:
            return _LIFE[op](self, line)
        return self._operations.perform(op, self._opened(), line, resolved)

    def told(self) -> Line:
        return {"state": None if self._log is None else state_of(self._log)}

    @property
    def is_open(self) -> bool:
        return self._log is not None

    def _opened(self) -> Log:
        if self._log is None:
            raise ClosedError("no log is open")
        return self._log

    # ---- settings -----------------------------------------------------------------------------

    def _name(self, line: Line) -> None:
        self._partition = (line["topic"], line.get("partition", 0))

    def _reconfigure(self, line: Line) -> None:
        self._config = self._config.changed(settings_of(line))
        if self._log is not None:
            self._log.config = self._config

    # ---- the log's life -----------------------------------------------------------------------

    def _open(self, line: Line) -> None:
        if self._log is not None:
            raise OpenError("the log is open already")
        marker = os.path.join(self._log_dir, CLEAN_SHUTDOWN)
        is_clean = line.get("clean", self._files.exists(marker))
        remove_if_exists(self._files, marker)
        self._files.sync_directory(self._log_dir)
        options = LogOptions(
            clock=lambda: self._clock.now_ms,
            scheduler=self._clock.scheduler,
            config=self._config,
            files=self._files,
            state=LoadingState(
                is_clean=is_clean,
                log_start=self._known(line, "log_start_offset", checkpoint.LOG_START),
                recovery_point=self._known(line, "recovery_point", checkpoint.RECOVERY_POINT),
            ),
            producer_settings=self._clock.producer_settings,
            kafka=self._clock.kafka,
        )
        self._log = Log.open(self._partition_dir, options)
        self._log.update_high_watermark(self._known(line, "high_watermark", checkpoint.REPLICATION))

    def _known(self, line: Line, name: str, file: str) -> int:
        if name in line:
            return int(line[name])
        entries = checkpoint.read(os.path.join(self._log_dir, file), self._files)
        return entries.get(self._partition, 0)

    def _close(self, _: Line) -> None:
        log = self._opened()
        self._clock.scheduler.forget()
        log.prepare_for_close()
        log.flush(force=True)
        log.close()
        self._write_checkpoints(log)
        clean_shutdown.write(self._log_dir, files=self._files)
        self._log = None

    def _checkpoint(self, _: Line) -> None:
        self._write_checkpoints(self._opened())

    def _write_checkpoints(self, log: Log) -> None:
        self._write_checkpoint(checkpoint.RECOVERY_POINT, log.recovery_point)
        self._write_checkpoint(checkpoint.REPLICATION, log.high_watermark)
        start = log.log_start_offset
        told = {self._partition: start} if start > log.segments[0].base_offset else {}
        checkpoint.write(os.path.join(self._log_dir, checkpoint.LOG_START), told, self._files)

    def _write_checkpoint(self, name: str, offset: int) -> None:
        path = os.path.join(self._log_dir, name)
        entries = checkpoint.read(path, self._files) | {self._partition: offset}
        checkpoint.write(path, entries, self._files)

    def crash(self, _: Line | None = None) -> None:
        log = self._opened()
        self._clock.scheduler.forget()
        self._log = None
        log.close_handlers()
        hidden = f"{log.path}.hidden"
        if self._files.exists(hidden):
            if self._files.exists(log.path):
                self._empty(log.path)
                self._files.rename(log.path, f"{hidden}.gone")
            self._files.rename(hidden, log.path)

    def _empty(self, path: str) -> None:
        for entry in self._files.list_directory(path):
            self._files.remove(os.path.join(path, entry.name))

    def _hide(self, _: Line) -> None:
        path = self._opened().path
        self._files.rename(path, f"{path}.hidden")

    def _damage(self, line: Line) -> Line:
        if self._log is not None:
            raise OpenError("the log is open")
        return damage(self._files, self._log_dir, self._partition_dir, line)

    def _list_files(self, _: Line) -> list[Line]:
        return files_below(self._files, self._log_dir)


_LIFE: dict[str, Callable[[OneLog, Line], Any]] = {
    "partition": OneLog._name,
    "config": OneLog._reconfigure,
    "open": OneLog._open,
    "close": OneLog._close,
    "checkpoint": OneLog._checkpoint,
    "crash": OneLog.crash,
    "hide": OneLog._hide,
    "damage": OneLog._damage,
    "files": OneLog._list_files,
}
