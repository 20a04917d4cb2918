"""Remember logs whose data is wrong from one run to the next, in a file of the log directory.

    {"version": 2, "logs": [{"topic", "partition", "reason", "runs", "first_ms", "last_ms",
                             "files": digest of names, sizes and times of its files,
                             "topic_id": null where an older broker wrote none}]}

Version 3, which is written only where it has something to say, has two lists more:

    "conditions": [{"text", "since_ms"}], "waiting": [{"topic", "partition", "code", "since_ms"}]

what is wrong with the sources of settings, and the logs that are set aside for that: what lasts is
a note from the second run on, and what has passed is said once.

A run does not read such a log again until one of its files has changed, or it is asked to. What was
wrong in a topic that was deleted and recreated since, under another id, is forgotten. In version 1,
which has no topic_id, the files alone decide. A broker does not look at a file in a log directory
that it does not know. Kafka's own cleaner keeps its marks in memory only (uncleanable partitions;
compaction C-17.4). A file that cannot be read is ignored, and is left for the operator to look at:
nothing is remembered in its place.

`RememberedLogs` holds what the files of all log directories say, for the length of one command.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from compactor.host.printable import counted, iso_time
from compactor.json_types import is_of_type, json_text
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.reason_codes import ReasonCode, error_text
from compactor.settings.sources import OF_SOURCES
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.checkpoint import TopicPartition
from storage.formats.partition_metadata import topic_id_of
from storage.log.log_dir import is_of_file

SET_ASIDE = "compactor-set-aside.json"
VERSION, OLDER_VERSION, WITH_CONDITIONS = 2, 1, 3
MAX_BYTES = 64 << 20  # a hundred thousand logs; what is longer was not written here

_Held = TypeVar("_Held")


class SetAside(NamedTuple):
    """Why a log is left alone, and since when."""

    reason: str
    runs: int  # that have found it so
    first_ms: int
    last_ms: int
    files: str  # digest
    topic_id: str | None = None  # None: an older broker, or an older version of this, wrote none

    def is_of(self, path: str, files: Files = LOCAL) -> bool:
        """Whether the topic in a partition directory is the one that was set aside."""
        return self.topic_id in (None, _topic_id(path, files))


class WaitingLog(NamedTuple):
    """Why the last run set a log aside for a source of settings, and since when."""

    code: str
    since_ms: int


class MemoryContents(NamedTuple):
    """What the file says."""

    logs: Mapping[TopicPartition, SetAside]
    conditions: Mapping[str, int] = {}  # what is wrong with a source of settings, and since when
    waiting: Mapping[TopicPartition, WaitingLog] = {}


class _Memory(NamedTuple):
    """What a log directory remembers."""

    log_dir: str
    contents: MemoryContents
    problem: str | None  # why its file cannot be read

    @property
    def path(self) -> str:
        return os.path.join(self.log_dir, SET_ASIDE)


class RememberedLogs:
    """What the log directories of a command remember.

    `problems` are those to plan by: by path of the partition directory, why a log that has not
    changed since is left alone. `warnings` are for the operator, and so are `notes`: warnings of
    earlier runs.
    """

    def __init__(self, log_dirs: Sequence[str], retry: bool = False, files: Files = LOCAL) -> None:
        self._files = files
        self._memories = [_read(log_dir, files) for log_dir in log_dirs]
        self.problems = {} if retry else dict(self._unchanged())
        self.warnings = [memory.problem for memory in self._memories if memory.problem is not None]

    def lasting(self, conditions: Mapping[str, str]) -> dict[str, str]:
        """Give notes for those of these warnings that earlier runs had, too, by warning.

        conditions: what each warning is about, in words that stay while it lasts.
        """
        known = [memory.contents.conditions for memory in self._memories]
        found = {}
        for warning, condition in conditions.items():
            since = [each[condition] for each in known if condition in each]
            if known and len(since) == len(known):
                found[warning] = f"Since {iso_time(min(since))}: {warning}"
        return found

    def well_again(self, reports: Sequence[LogReport], conditions: Sequence[str]) -> Iterator[str]:
        """Yield a note for each log and condition of earlier runs that has passed."""
        passed = {
            text: since_ms
            for memory in self._memories
            for text, since_ms in memory.contents.conditions.items()
            if text not in conditions
        }
        for text, since_ms in passed.items():
            yield f"No longer so, as it was since {iso_time(since_ms)}: {text}"
        waiting = {
            (memory.log_dir, *key): held
            for memory in self._memories
            for key, held in memory.contents.waiting.items()
        }
        for report in reports:
            held = waiting.get(report.key)
            if held is not None and _is_well(report):
                yield (
                    f"{report.topic}-{report.partition} is well again: it was set aside since "
                    f"{iso_time(held.since_ms)} ({held.code})"
                )

    def still_corrupt(self, not_cleaned: Sequence[LogReport]) -> Iterator[LogReport]:
        """The reports on logs that are left alone for what earlier runs met."""
        for report in not_cleaned:
            path = os.path.join(report.log_dir, f"{report.topic}-{report.partition}")
            if path in self.problems and report.reason == self.problems[path]:
                yield replace(report, is_data_problem=True)

    def update(
        self, reports: Sequence[LogReport], now_ms: int, conditions: Sequence[str] = ()
    ) -> None:
        """Remember what a run has met. The caller holds the locks of the log directories."""
        for memory in self._memories:
            own = [report for report in reports if report.log_dir == memory.log_dir]
            known = memory.contents.conditions
            contents = MemoryContents(
                self._logs_after(memory, own, now_ms),
                {text: known.get(text, now_ms) for text in conditions},
                _waiting_after(memory.contents.waiting, own, now_ms),
            )
            failure = self._write(memory, contents)
            if failure is not None:
                self.warnings.append(failure)

    def _unchanged(self) -> Iterator[tuple[str, str]]:
        """Path of the partition directory, and why a log that has not changed is left alone."""
        for memory in self._memories:
            for (topic, partition), held in memory.contents.logs.items():
                path = os.path.join(memory.log_dir, f"{topic}-{partition}")
                if not held.is_of(path, self._files):
                    continue
                if digest_of_files(path, self._files) == held.files:
                    times = "once" if held.runs == 1 else counted(held.runs, "time")
                    since = f"set aside since {iso_time(held.first_ms)} ({times})"
                    yield (
                        path,
                        f"{since} and not changed since; --retry tries it again: {held.reason}",
                    )

    def _logs_after(
        self, memory: _Memory, reports: Iterable[LogReport], now_ms: int
    ) -> dict[TopicPartition, SetAside]:
        files = self._files
        paths: dict[TopicPartition, str] = {}

        def path_of(key: TopicPartition) -> str:
            return paths.setdefault(key, os.path.join(memory.log_dir, f"{key[0]}-{key[1]}"))

        before = memory.contents.logs
        logs = {key: held for key, held in before.items() if held.is_of(path_of(key), files)}
        for report in reports:
            key = report.topic, report.partition
            path = path_of(key)
            if path in self.problems:  # it was left alone
                continue
            if report.status is LogStatus.CLEANED:
                logs.pop(key, None)
            digest = digest_of_files(path, files) if report.is_data_problem else None
            if digest is not None:
                held = logs.get(key)
                count, first_ms = (held.runs, held.first_ms) if held else (0, now_ms)
                logs[key] = SetAside(
                    reason=report.reason or "",
                    runs=count + 1,
                    first_ms=first_ms,
                    last_ms=now_ms,
                    files=digest,
                    topic_id=_topic_id(path, files),
                )
        return {key: held for key, held in logs.items() if files.is_directory(path_of(key))}

    def _write(self, memory: _Memory, contents: MemoryContents) -> str | None:
        """Bring the file up to date, in one step; the problem if that fails.

        A crash leaves the old file or the new one.
        """
        if memory.problem is not None or contents == memory.contents:
            return None
        try:
            if any(contents):
                self._files.replace_file(memory.path, encode(contents))
            else:
                self._files.remove(memory.path)
                self._files.sync_directory(memory.log_dir)
        except OSError as error:
            return f"{error_text(error)}; what was set aside is not remembered"
        return None


def _read(log_dir: str, files: Files) -> _Memory:
    """Give what the file says; nothing, and the problem, where it cannot be read."""
    path = os.path.join(log_dir, SET_ASIDE)
    try:
        contents = decode(files.read_range(path, 0, MAX_BYTES + 1), path)
        return _Memory(log_dir, contents, None)
    except FileNotFoundError:
        return _Memory(log_dir, MemoryContents({}), None)
    except CorruptFileError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{path}: {error.strerror}"
    problem += "; it is ignored, and nothing is remembered until it is removed"
    return _Memory(log_dir, MemoryContents({}), problem)


def _waiting_after(
    known: Mapping[TopicPartition, WaitingLog], reports: Iterable[LogReport], now_ms: int
) -> dict[TopicPartition, WaitingLog]:
    """The logs that sources of settings set aside; one that a run left out stays as it was."""
    found: dict[TopicPartition, WaitingLog] = {}
    for report in reports:
        key = report.topic, report.partition
        before = known.get(key)
        if report.reason_code in OF_SOURCES:
            since_ms = before.since_ms if before else now_ms
            found[key] = WaitingLog(str(report.reason_code), since_ms)
        elif before is not None and not _is_well(report):
            found[key] = before
    return found


def _is_well(report: LogReport) -> bool:
    """Whether a run has looked at a log, and did not set it aside."""
    is_done = report.status in (LogStatus.CLEANED, LogStatus.PASSED_OVER)
    return is_done and report.reason_code is not ReasonCode.LEFT_OUT


def digest_of_files(path: str, files: Files = LOCAL) -> str | None:
    """A digest of a log's files, by names, sizes and times of modification.

    None where the partition directory cannot be listed.
    """
    try:
        entries = files.list_directory(path)
    except OSError:
        return None
    lines = sorted(
        f"{entry.name} {entry.size_bytes} {entry.mtime_ns} {entry.inode}\n"
        for entry in entries
        if is_of_file(entry.name)
    )
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def encode(contents: MemoryContents) -> bytes:
    """Lay the file out, by topic, then partition. Pure ASCII."""
    document: dict[str, Any] = {"version": VERSION, "logs": _rows(contents.logs)}
    if contents.conditions or contents.waiting:
        texts = sorted(contents.conditions.items())
        document["version"] = WITH_CONDITIONS
        document["conditions"] = [{"text": text, "since_ms": since} for text, since in texts]
        document["waiting"] = _rows(contents.waiting)
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def decode(data: bytes, path: str) -> MemoryContents:
    """Return the contents of a file of set-aside logs, of this version or an older one.

    Raise CorruptFileError where it is not as `encode` lays it out, and UnsupportedFormatError for
    a version that is not known.
    """
    if len(data) > MAX_BYTES:
        raise CorruptFileError(path, MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
    try:
        document = json.loads(data.decode("ascii"))
    except json.JSONDecodeError as error:
        raise CorruptFileError(path, error.pos, f"not JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, error.start, "not ASCII") from error
    except (RecursionError, ValueError) as error:  # brackets, digits without end
        raise CorruptFileError(path, 0, "not JSON that was written here") from error
    version = document.get("version") if isinstance(document, dict) else None
    if version not in (VERSION, OLDER_VERSION, WITH_CONDITIONS):
        raise UnsupportedFormatError(
            path, 0, f"version {json_text(version, 20)}, expected {VERSION}"
        )
    rows = _list(document, "logs", path)
    if version == OLDER_VERSION:
        rows = [row | {"topic_id": None} if isinstance(row, dict) else row for row in rows]
    logs = dict(_entry(SetAside, row, number, path) for number, row in enumerate(rows))
    if version != WITH_CONDITIONS:
        return MemoryContents(logs)
    conditions = {}
    for number, row in enumerate(_list(document, "conditions", path)):
        _check(row, {"text": str, "since_ms": int}, f"condition {number}", path)
        conditions[row["text"]] = row["since_ms"]
    rows = _list(document, "waiting", path)
    waiting = dict(_entry(WaitingLog, row, number, path) for number, row in enumerate(rows))
    return MemoryContents(logs, conditions, waiting)


def _rows(held: Mapping[TopicPartition, Any]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partition": partition, **each._asdict()}
        for (topic, partition), each in sorted(held.items())
    ]


def _list(document: Mapping[str, Any], name: str, path: str) -> list[Any]:
    rows = document.get(name)
    if not isinstance(rows, list):
        raise CorruptFileError(path, 0, f"it has no list of {name}")
    return rows


def _entry(
    kind: Callable[..., _Held], row: Any, number: int, path: str
) -> tuple[TopicPartition, _Held]:
    """A log, and what is held of it: a value of this kind, whose fields the row has."""
    _check(row, {"topic": str, "partition": int, **kind.__annotations__}, f"log {number}", path)
    key = row.pop("topic"), row.pop("partition")
    return key, kind(**row)


def _check(row: Any, fields: Mapping[str, Any], what: str, path: str) -> None:
    """Raise CorruptFileError where an entry has not these fields, of these types."""
    if not isinstance(row, dict) or row.keys() != fields.keys():
        raise CorruptFileError(path, 0, f"{what}: the fields are not {', '.join(fields)}")
    for name, type_ in fields.items():
        if not is_of_type(row[name], type_) or (type_ is int and row[name] < 0):
            raise CorruptFileError(path, 0, f"{what}: {name} is {json_text(row[name], 40)}")


def _topic_id(path: str, files: Files) -> str | None:
    """None, too, where it cannot be read: that file counts among those that decide."""
    try:
        return topic_id_of(path, files)
    except (CorruptFileError, OSError):
        return None
