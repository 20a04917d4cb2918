"""Lay out and parse what a run that keeps originals writes: which files it replaced by which. Pure.

    DIR/RUN/run.json                   the run, and its log directories by number
    DIR/RUN/0/orders-7/log.json        that log before its first step: all of its segments
    DIR/RUN/0/orders-7/000003.json     the third step of that log: what is replaced by what
    DIR/RUN/0/orders-7/000003/         the files that were replaced
    DIR/RUN/0/orders-7/undone          all of it was brought back; empty

A step is a segment group that is swapped, a segment that is split, or one that retention deletes.
Each file is known by name, size and checksum, so that a log can be recognised after any of them,
and by the segments that no step touched, too: a later cleaning may have gone over these alone.
"""

import json
import re
from typing import Any, NamedTuple

from compactor.errors import RefusedError
from compactor.json_types import json_text
from compactor.log_dirs.kept_files import FileMark
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import LOG, OFFSET_DIGITS, SEGMENT_SUFFIXES, SNAPSHOT, offset_of
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT

RUN_FORMAT, RUN_VERSION = "compactor-originals", 1
LOG_FORMAT, LOG_VERSION = "compactor-originals-log", 1
STEP_FORMAT, STEP_VERSION = "compactor-originals-step", 2
OLDER_STEP_VERSION = 1  # without a LOG_FORMAT file beside it
RUN_FILE = "run.json"
LOG_FILE = "log.json"
UNDONE_FILE = "undone"  # of a log: what happened to it since has nothing to do with the run
DISCARDED_FILE = "discarded.json"  # the same, of a run that is being discarded
_STEP = re.compile(r"(\d{6})\.json", re.ASCII)
_CHECKSUM = re.compile(r"[0-9a-f]{16}", re.ASCII)


class KeptRun(NamedTuple):
    run_id: str
    started_at_ms: int
    log_dirs: tuple[str, ...]


class LogBefore(NamedTuple):
    """A log as it was before the first step."""

    topic_id: str | None  # None: an older broker wrote none
    segments: tuple[FileMark, ...]  # every .log, by rising base offset; the last one was active
    end_offset: int  # of the log
    cleaner_offset: int | None  # the log's entry before the run; None: it had none
    log_start_offset: int | None  # the same


class KeptStep(NamedTuple):
    """One change to a log, in the order in which they were made."""

    number: int
    originals: tuple[FileMark, ...]  # what stood in the log and does no longer; all are kept
    put: tuple[FileMark, ...]  # what stands in their place
    cleaned_to: int  # the highest that the run leaves the log's cleaner entry at
    deleted_up_to: int | None = None  # of retention: the log start that it set
    rolled_at: int | None = None  # base offset of an empty active segment that it made


def run_document(run: KeptRun) -> bytes:
    return _document(RUN_FORMAT, RUN_VERSION, run._asdict())


def log_document(log: LogBefore) -> bytes:
    segments = [mark._asdict() for mark in log.segments]
    return _document(LOG_FORMAT, LOG_VERSION, log._asdict() | {"segments": segments})


def step_document(step: KeptStep) -> bytes:
    fields = step._asdict() | {
        "originals": [mark._asdict() for mark in step.originals],
        "put": [mark._asdict() for mark in step.put],
    }
    return _document(STEP_FORMAT, STEP_VERSION, fields)


def run_from(data: bytes, path: str) -> KeptRun:
    """Raise CorruptFileError where it is not what run_document made."""
    fields = _fields(data, path, RUN_FORMAT, RUN_VERSION)
    log_dirs = fields.get("log_dirs")
    if not isinstance(log_dirs, list) or not all(isinstance(name, str) for name in log_dirs):
        raise CorruptFileError(path, 0, "no list of log directories")
    run_id = fields.get("run_id")
    if not isinstance(run_id, str):
        raise CorruptFileError(path, 0, "no run id")
    return KeptRun(run_id, _number(fields, "started_at_ms", path), tuple(log_dirs))


def log_from(data: bytes, path: str) -> LogBefore:
    """Raise CorruptFileError where it is not what log_document made."""
    fields = _fields(data, path, LOG_FORMAT, LOG_VERSION)
    topic_id = fields.get("topic_id")
    if topic_id is not None and not isinstance(topic_id, str):
        raise CorruptFileError(path, 0, f"topic_id: {json_text(topic_id)} is not a topic id")
    segments = _marks(fields, "segments", path)
    if not segments or not all(mark.name.endswith(LOG) for mark in segments):
        raise CorruptFileError(path, 0, "segments: no list of .log files")
    return LogBefore(
        topic_id,
        segments,
        _number(fields, "end_offset", path),
        _optional(fields, "cleaner_offset", path),
        _optional(fields, "log_start_offset", path),
    )


def step_from(data: bytes, path: str) -> KeptStep:
    """Raise CorruptFileError where step_document did not make it, RefusedError if an older one."""
    fields = _fields(data, path, STEP_FORMAT, STEP_VERSION)
    return KeptStep(
        number=_number(fields, "number", path),
        originals=_marks(fields, "originals", path),
        put=_marks(fields, "put", path),
        cleaned_to=_number(fields, "cleaned_to", path),
        deleted_up_to=_optional(fields, "deleted_up_to", path),
        rolled_at=_optional(fields, "rolled_at", path),
    )


def step_name(number: int) -> str:
    """Of the manifest; without its extension, of the directory of the files."""
    return f"{number:06d}.json"


def step_number(name: str) -> int | None:
    """None for what is no manifest of a step."""
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else None


def _document(kind: str, version: int, fields: dict[str, Any]) -> bytes:
    return (
        json.dumps({"format": kind, "schema_version": version, **fields}, indent=1) + "\n"
    ).encode()


def _fields(data: bytes, path: str, kind: str, version: int) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, 0, f"not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("format") != kind:
        raise CorruptFileError(path, 0, f"not a {kind} file")
    found = fields.get("schema_version")
    if (kind, found) == (STEP_FORMAT, OLDER_STEP_VERSION):
        raise RefusedError(
            f"{path}: kept by an older version of compactor, which did not note all that its run "
            "left: nobody knows whether the log was changed since. Undo it with that version, or "
            "drop it with --discard",
            ReasonCode.OLDER_VERSION,
        )
    if found != version:
        raise UnsupportedFormatError(path, 0, f"version {json_text(found)}, expected {version}")
    return fields


def _number(fields: dict[str, Any], name: str, path: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise CorruptFileError(path, 0, f"{name}: {json_text(value)} is not a possible number")
    return value


def _optional(fields: dict[str, Any], name: str, path: str) -> int | None:
    return None if fields.get(name) is None else _number(fields, name, path)


def _marks(fields: dict[str, Any], name: str, path: str) -> tuple[FileMark, ...]:
    values = fields.get(name)
    if not isinstance(values, list):
        raise CorruptFileError(path, 0, f"{name}: no list of files")
    return tuple(_mark(value, path) for value in values)


def _mark(value: Any, path: str) -> FileMark:
    if not isinstance(value, dict):
        raise CorruptFileError(path, 0, f"{json_text(value)} is not a file")
    name, checksum = value.get("name"), value.get("checksum")
    if not isinstance(name, str) or not _is_file_of_a_log(name):
        raise CorruptFileError(path, 0, f"{json_text(name)} is not the name of a file of a log")
    if not isinstance(checksum, str) or not _CHECKSUM.fullmatch(checksum):
        raise CorruptFileError(path, 0, f"{name}: {json_text(checksum)} is not a checksum")
    return FileMark(name, _number(value, "size_bytes", path), checksum)


def _is_file_of_a_log(name: str) -> bool:
    """Whether a name can lead to no other directory."""
    digits, _, kind = name.partition(".")
    is_numbered = len(digits) == OFFSET_DIGITS and offset_of(name) is not None
    return name == LEADER_EPOCH_CHECKPOINT or (
        is_numbered and f".{kind}" in (*SEGMENT_SUFFIXES, SNAPSHOT)
    )
