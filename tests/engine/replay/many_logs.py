"""A script of several logs in several log directories under a log manager."""

import contextlib
import os
from collections.abc import Callable
from typing import Any

from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import TopicPartition
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.log_dir_lock import lock_log_dir
from storage.log.log_manager import LogManager
from storage.log.manager_options import BY_HAND, ManagerOptions
from tests.engine.replay.log_operations import LogOperations
from tests.engine.replay.script_cleaning import ScriptCleaning
from tests.engine.replay.script_clock import ScriptClock
from tests.engine.replay.script_damage import damage
from tests.engine.replay.script_values import (
    ClosedError,
    Line,
    OpenError,
    ScriptError,
    Values,
    settings_of,
)
from tests.engine.replay.transcript import files_below, masked, state_of

_DEFAULT_LOG = "t-0"
_NOT_HERE = ("open", "close", "checkpoint", "partition")


class ManyLogs:
    """A log manager, with directories `d0`, `d1`, … in the directory of the script."""

    def __init__(
        self, files: Files, log_dir: str, clock: ScriptClock, cleaning: ScriptCleaning
    ) -> None:
        self._files, self._root, self._clock = files, log_dir, clock
        self._operations = LogOperations(clock, cleaning)
        self._directories: list[str] = []
        self._defaults: dict[str, str] = {}
        self._topics: dict[str, dict[str, str]] = {}
        self._manager: LogManager | None = None

    def perform(self, op: str, line: Line, resolved: Line) -> Any:
        if op in _NOT_HERE:
            raise ScriptError(f"a log manager has no op {op}")
        if op in _LIFE:
            return _LIFE[op](self, line)
        if op in _MANAGING:
            return _MANAGING[op](self, self._running(), line, resolved)
        return self._operations.perform(op, self._log(line), line, resolved)

    def told(self) -> Line:
        directories = {
            os.path.basename(path): sorted(map(masked, self._files.list_names(path)[0]))
            for path in self._directories
        }
        return {"directories": directories, "logs": self._states()}

    def _states(self) -> Line | None:
        if self._manager is None:
            return None
        found = {_name(partition): log for partition, log in self._manager.logs.items()}
        moved = self._manager.future_logs.items()
        found |= {f"{_name(partition)}.future": log for partition, log in moved}
        return {name: state_of(found[name]) for name in sorted(found)}

    @property
    def is_open(self) -> bool:
        return self._manager is not None

    def _running(self) -> LogManager:
        if self._manager is None:
            raise ClosedError("no log manager is running")
        return self._manager

    def _log(self, line: Line) -> Log:
        log = self._running().get(_partition(line), line.get("future", False))
        if log is None:
            raise ClosedError(f"there is no log {line.get('log', _DEFAULT_LOG)}")
        return log

    # ---- start, end, settings -----------------------------------------------------------------

    def _begin(self, line: Line) -> None:
        self._directories = [
            os.path.join(self._root, f"d{number}") for number in range(line.get("dirs", 1))
        ]
        for path in self._directories:
            self._files.make_directory(path)

    def _configure(self, line: Line) -> None:
        told, topic = settings_of(line), line.get("topic")
        before = self._defaults if topic is None else self._topics.get(topic, {})
        settings = before | told
        LogConfig().changed(settings)  # refuses what is none
        if topic is None:
            if self._manager is not None:
                raise ScriptError("the defaults of a running log manager stay")
            self._defaults = settings
            return
        self._topics[topic] = settings
        if self._manager is not None:
            self._manager.configure_topic(topic, settings)

    def _start(self, line: Line) -> None:
        if self._manager is not None:
            raise OpenError("the log manager is running already")
        stray = {_parsed(name) for name in line.get("stray", [])}
        manager = LogManager(
            self._directories,
            ManagerOptions(
                clock=lambda: self._clock.now_ms,
                scheduler=self._clock.scheduler,
                files=self._files,
                lock=lock_log_dir if self._files is LOCAL else contextlib.nullcontext,
                config=LogConfig().changed(self._defaults),
                topic_settings=self._topics,
                producer_settings=self._clock.producer_settings,
                recovery_threads=1,
                intervals=BY_HAND,
                is_stray=stray.__contains__,
                kafka=self._clock.kafka,
            ),
        )
        try:
            manager.start()
        except BaseException:
            self._clock.scheduler.forget()
            raise
        self._manager = manager

    def _shut_down(self, _: Line) -> None:
        self._clock.scheduler.forget()
        manager, self._manager = self._running(), None
        manager.close()

    def crash(self, _: Line | None = None) -> None:
        manager, self._manager = self._running(), None
        self._clock.scheduler.forget()
        manager.let_go()

    def _damage(self, line: Line) -> Line:
        if self._manager is not None:
            raise OpenError("the log manager is running")
        log_dir = self._directories[line.get("dir", 0)]
        log = os.path.join(log_dir, line.get("log", _DEFAULT_LOG))
        return damage(self._files, log_dir, log, line)

    def _hide(self, line: Line) -> None:
        path = self._log(line).path
        hidden = os.path.join(self._root, f"{os.path.basename(path)}.hidden")
        self._files.rename(path, hidden)

    def _list_files(self, _: Line) -> list[Line]:
        return files_below(self._files, self._root)

    # ---- what the manager does ----------------------------------------------------------------

    def _create(self, manager: LogManager, line: Line, _: Line) -> None:
        partition, is_future = _partition(line), line.get("future", False)
        if is_future:
            manager.pause_cleaning(partition)
        manager.prefer_directory(partition, self._directories[line.get("dir", 0)])
        manager.create(partition, is_future)

    def _delete(self, manager: LogManager, line: Line, _: Line) -> None:
        is_future, is_stray = line.get("future", False), line.get("stray", False)
        manager.delete(_partition(line), is_future, is_stray)

    def _replace(self, manager: LogManager, line: Line, _: Line) -> None:
        manager.replace_with_future(_partition(line))

    def _do_task(self, manager: LogManager, line: Line, _: Line) -> None:
        if line["name"] not in _TASKS:
            raise ScriptError(f"no task is named {line['name']}")
        _TASKS[line["name"]](manager)

    def _truncate(self, manager: LogManager, line: Line, resolved: Line) -> None:
        offsets = {}
        for name, value in line["offsets"].items():
            log = self._log({"log": name})
            offsets[_parsed(name)] = Values(log, resolved).offset({name: value}, name)
        manager.truncate_to(offsets)

    def _truncate_fully(self, manager: LogManager, line: Line, resolved: Line) -> None:
        offset = Values(self._log(line), resolved).offset(line, "offset")
        manager.truncate_fully(_partition(line), offset)


_TASKS: dict[str, Callable[[LogManager], object]] = {
    "retention": LogManager.apply_retention,
    "flush": LogManager.flush_dirty_logs,
    "checkpoint_recovery_points": LogManager.checkpoint_recovery_points,
    "checkpoint_log_starts": LogManager.checkpoint_log_starts,
}

_LIFE: dict[str, Callable[[ManyLogs, Line], Any]] = {
    "manager": ManyLogs._begin,
    "config": ManyLogs._configure,
    "startup": ManyLogs._start,
    "shutdown": ManyLogs._shut_down,
    "crash": ManyLogs.crash,
    "damage": ManyLogs._damage,
    "hide": ManyLogs._hide,
    "files": ManyLogs._list_files,
}

_MANAGING: dict[str, Callable[[ManyLogs, LogManager, Line, Line], None]] = {
    "create": ManyLogs._create,
    "delete_log": ManyLogs._delete,
    "replace_with_future": ManyLogs._replace,
    "task": ManyLogs._do_task,
    "truncate_logs": ManyLogs._truncate,
    "truncate_log_fully": ManyLogs._truncate_fully,
}


def _name(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"


def _partition(line: Line) -> TopicPartition:
    return _parsed(line.get("log", _DEFAULT_LOG))


def _parsed(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return topic, int(number)
