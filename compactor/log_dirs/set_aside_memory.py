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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from compactor.host.printable import counted, iso_time
from compactor.json_types import json_text
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.reason_codes import ReasonCode
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

_FIELDS = {
    "topic": str,
    "partition": int,
    "reason": str,
    "runs": int,
    "first_ms": int,
    "last_ms": int,
    "files": str,
    "topic_id": str,
}

_CONDITION = {"text": str, "since_ms": int}
_WAITING = {"topic": str, "partition": int, "code": str, "since_ms": int}


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


class SetAsideMemory(NamedTuple):
    """What a log directory remembers."""

    log_dir: str
    contents: MemoryContents
    problem: str | None = None  # why its file cannot be read
    access: Files = LOCAL  # by which it was read

    @property
    def path(self) -> str:
        return os.path.join(self.log_dir, SET_ASIDE)

    @property
    def logs(self) -> Mapping[TopicPartition, SetAside]:
        return self.contents.logs


class RememberedLogs:
    """What the log directories of a command remember.

    `problems` are those to plan by: by path of the partition directory, why a log that has not
    changed since is left alone. `warnings` are for the operator, and so are `notes`: warnings of
    earlier runs.
    """

    def __init__(self, log_dirs: Sequence[str], retry: bool = False, files: Files = LOCAL) -> None:
        self._memories = [read(log_dir, files) for log_dir in log_dirs]
        self.problems = {} if retry else known_problems(self._memories)
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
            held = waiting.get((report.log_dir, report.topic, report.partition))
            if held is not None and is_well(report):
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
            contents = MemoryContents(
                after_run(memory, reports, self.problems, now_ms),
                conditions_after(memory, conditions, now_ms),
                waiting_after(memory, reports, now_ms),
            )
            failure = write(memory, contents)
            if failure is not None:
                self.warnings.append(failure)


def read(log_dir: str, files: Files = LOCAL) -> SetAsideMemory:
    """Give what the file says; nothing, and the problem, where it cannot be read."""
    path = os.path.join(log_dir, SET_ASIDE)
    try:
        contents = decoded(files.read_range(path, 0, MAX_BYTES + 1), path)
        return SetAsideMemory(log_dir, contents, access=files)
    except FileNotFoundError:
        return SetAsideMemory(log_dir, MemoryContents({}), access=files)
    except CorruptFileError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{path}: {error.strerror}"
    problem += "; it is ignored, and nothing is remembered until it is removed"
    return SetAsideMemory(log_dir, MemoryContents({}), problem, files)


def known_problems(memories: Iterable[SetAsideMemory]) -> dict[str, str]:
    """By path of the partition directory: why a log that has not changed since is left alone."""
    return {
        path: f"set aside since {iso_time(held.first_ms)} ({_times(held.runs)}) and not changed "
        f"since; --retry tries it again: {held.reason}"
        for memory in memories
        for (topic, partition), held in memory.logs.items()
        if held.is_of(path := os.path.join(memory.log_dir, f"{topic}-{partition}"), memory.access)
        and digest_of_files(path, memory.access) == held.files
    }


def after_run(
    memory: SetAsideMemory, reports: Iterable[LogReport], known: Mapping[str, str], now_ms: int
) -> dict[TopicPartition, SetAside]:
    """What is to be remembered after a run. known: the logs that it left alone."""
    logs = {
        (topic, partition): held
        for (topic, partition), held in memory.logs.items()
        if held.is_of(os.path.join(memory.log_dir, f"{topic}-{partition}"), memory.access)
    }
    for report in reports:
        key = report.topic, report.partition
        path = os.path.join(memory.log_dir, f"{report.topic}-{report.partition}")
        if report.log_dir != memory.log_dir or path in known:
            continue
        if report.status is LogStatus.CLEANED:
            logs.pop(key, None)
        files = digest_of_files(path, memory.access) if report.is_data_problem else None
        if files is not None:
            held = logs.get(key)
            count, first_ms = (held.runs, held.first_ms) if held else (0, now_ms)
            logs[key] = SetAside(
                reason=report.reason or "",
                runs=count + 1,
                first_ms=first_ms,
                last_ms=now_ms,
                files=files,
                topic_id=_topic_id(path, memory.access),
            )
    return {
        (topic, partition): held
        for (topic, partition), held in logs.items()
        if memory.access.is_directory(os.path.join(memory.log_dir, f"{topic}-{partition}"))
    }


def conditions_after(memory: SetAsideMemory, texts: Iterable[str], now_ms: int) -> dict[str, int]:
    """What is wrong with sources of settings after a run, and since when."""
    return {text: memory.contents.conditions.get(text, now_ms) for text in texts}


def waiting_after(
    memory: SetAsideMemory, reports: Iterable[LogReport], now_ms: int
) -> dict[TopicPartition, WaitingLog]:
    """The logs that sources of settings set aside; one that a run left out stays as it was."""
    found: dict[TopicPartition, WaitingLog] = {}
    for report in reports:
        key = report.topic, report.partition
        before = memory.contents.waiting.get(key)
        if report.log_dir != memory.log_dir:
            continue
        if report.reason_code in OF_SOURCES:
            since_ms = before.since_ms if before else now_ms
            found[key] = WaitingLog(str(report.reason_code), since_ms)
        elif before is not None and not is_well(report):
            found[key] = before
    return found


def is_well(report: LogReport) -> bool:
    """Whether a run has looked at a log, and did not set it aside."""
    is_done = report.status in (LogStatus.CLEANED, LogStatus.PASSED_OVER)
    return is_done and report.reason_code is not ReasonCode.LEFT_OUT


def write(
    memory: SetAsideMemory, found: Mapping[TopicPartition, SetAside] | MemoryContents
) -> str | None:
    """Bring the file up to date, in one step; the problem if that fails.

    The caller holds the lock of the log directory. A crash leaves the old file or the new one.
    """
    contents = found if isinstance(found, MemoryContents) else MemoryContents(found)
    if memory.problem is not None or contents == memory.contents:
        return None
    try:
        if any(contents):
            memory.access.replace_file(memory.path, encoded(contents))
        else:
            memory.access.remove(memory.path)
            memory.access.sync_directory(memory.log_dir)
    except OSError as error:
        return f"{error.filename}: {error.strerror}; what was set aside is not remembered"
    return None


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


def encode(logs: Mapping[TopicPartition, SetAside]) -> bytes:
    """Lay out a file of logs alone."""
    return encoded(MemoryContents(logs))


def encoded(contents: MemoryContents) -> bytes:
    """Lay the file out, by topic, then partition. Pure ASCII."""
    document: dict[str, Any] = {"version": VERSION, "logs": _rows(contents.logs)}
    if contents.conditions or contents.waiting:
        texts = sorted(contents.conditions.items())
        document["version"] = WITH_CONDITIONS
        document["conditions"] = [{"text": text, "since_ms": since} for text, since in texts]
        document["waiting"] = _rows(contents.waiting)
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def decode(data: bytes, path: str) -> Mapping[TopicPartition, SetAside]:
    """Give the logs alone. Raise CorruptFileError as `decoded` does."""
    return decoded(data, path).logs


def decoded(data: bytes, path: str) -> MemoryContents:
    """Return the contents of a file of set-aside logs, of this version or an older one.

    Raise CorruptFileError where it is not as `encoded` lays it out, and UnsupportedFormatError for
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
    logs = dict(_decode_row(row, number, path) for number, row in enumerate(rows))
    if version != WITH_CONDITIONS:
        return MemoryContents(logs)
    conditions, waiting = {}, {}
    for number, row in enumerate(_list(document, "conditions", path)):
        _check(row, _CONDITION, f"condition {number}", path)
        conditions[row["text"]] = row["since_ms"]
    for number, row in enumerate(_list(document, "waiting", path)):
        _check(row, _WAITING, f"log {number}", path)
        waiting[row["topic"], row["partition"]] = WaitingLog(row["code"], row["since_ms"])
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


def _decode_row(row: Any, number: int, path: str) -> tuple[TopicPartition, SetAside]:
    _check(row, _FIELDS, f"log {number}", path)
    topic, partition = row.pop("topic"), row.pop("partition")
    return (topic, partition), SetAside(**row)


def _check(row: Any, fields: Mapping[str, type], what: str, path: str) -> None:
    """Raise CorruptFileError where an entry has not these fields, of these types."""
    if not isinstance(row, dict) or row.keys() != fields.keys():
        raise CorruptFileError(path, 0, f"{what}: the fields are not {', '.join(fields)}")
    for name, kind in fields.items():
        if name == "topic_id" and row[name] is None:
            continue
        is_negative = kind is int and type(row[name]) is int and row[name] < 0
        if type(row[name]) is not kind or is_negative:
            raise CorruptFileError(path, 0, f"{what}: {name} is {json_text(row[name], 40)}")


def _topic_id(path: str, files: Files) -> str | None:
    """None, too, where it cannot be read: that file counts among those that decide."""
    try:
        return topic_id_of(path, files)
    except (CorruptFileError, OSError):
        return None


def _times(count: int) -> str:
    return "once" if count == 1 else counted(count, "time")
