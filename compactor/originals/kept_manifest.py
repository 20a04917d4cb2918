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
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from compactor.errors import RefusedError
from compactor.json_types import json_text
from compactor.log_dirs.kept_files import FileMark
from compactor.outcome.json_values import to_json
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import LOG, OFFSET_DIGITS, SEGMENT_SUFFIXES, SNAPSHOT, offset_of
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT

OLDER_STEP_VERSION = 1  # without a LOG_FILE beside it
RUN_FILE = "run.json"
LOG_FILE = "log.json"
UNDONE_FILE = "undone"  # of a log: what happened to it since has nothing to do with the run
DISCARDED_FILE = "discarded.json"  # the same, of a run that is being discarded
_STEP = re.compile(r"(\d{6})\.json", re.ASCII)
_CHECKSUM = re.compile(r"[0-9a-f]{16}", re.ASCII)
_Reader = Callable[[Any, str, str], Any]  # of a value, the name of its field, the path


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


_Kept = TypeVar("_Kept", KeptRun, LogBefore, KeptStep)
_FORMATS: Mapping[type, tuple[str, int]] = {  # and their versions
    KeptRun: ("compactor-originals", 1),
    LogBefore: ("compactor-originals-log", 1),
    KeptStep: ("compactor-originals-step", 2),
}


def document(value: KeptRun | LogBefore | KeptStep) -> bytes:
    """Lay out a manifest."""
    format_, version = _FORMATS[type(value)]
    fields = {"format": format_, "schema_version": version, **to_json(value)}
    return (json.dumps(fields, indent=1) + "\n").encode()


def parse(kind: type[_Kept], data: bytes, path: str) -> _Kept:
    """Read what `document` laid out of a value of this kind.

    Raise CorruptFileError where it is not that, RefusedError where an older version kept a step.
    """
    fields = _fields(kind, data, path)
    values = {
        name: _READERS[type_](fields.get(name), name, path)
        for name, type_ in kind.__annotations__.items()
    }
    value = kind(**values)
    if isinstance(value, LogBefore):
        logs = [mark for mark in value.segments if mark.name.endswith(LOG)]
        if not logs or len(logs) != len(value.segments):
            raise CorruptFileError(path, 0, "segments: no list of .log files")
    return value


def step_name(number: int) -> str:
    """Of the manifest; without its extension, of the directory of the files."""
    return f"{number:06d}.json"


def step_number(name: str) -> int | None:
    """None for what is no manifest of a step."""
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else None


def _fields(kind: type, data: bytes, path: str) -> dict[str, Any]:
    format_, version = _FORMATS[kind]
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, 0, f"not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("format") != format_:
        raise CorruptFileError(path, 0, f"not a {format_} file")
    found = fields.get("schema_version")
    if kind is KeptStep and found == OLDER_STEP_VERSION:
        raise RefusedError(
            f"{path}: kept by an older version of compactor, which did not note all that its run "
            "left: nobody knows whether the log was changed since. Undo it with that version, or "
            "drop it with --discard",
            ReasonCode.OLDER_VERSION,
        )
    if found != version:
        raise UnsupportedFormatError(path, 0, f"version {json_text(found)}, expected {version}")
    return fields


def _text(value: Any, name: str, path: str) -> str:
    if not isinstance(value, str):
        raise CorruptFileError(path, 0, f"{name}: {json_text(value)} is not text")
    return value


def _number(value: Any, name: str, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise CorruptFileError(path, 0, f"{name}: {json_text(value)} is not a possible number")
    return value


def _optional(read: _Reader) -> _Reader:
    return lambda value, name, path: None if value is None else read(value, name, path)


def _list(read: _Reader, what: str) -> _Reader:
    def read_list(values: Any, name: str, path: str) -> Any:
        if not isinstance(values, list):
            raise CorruptFileError(path, 0, f"{name}: no list of {what}")
        return tuple(read(value, name, path) for value in values)

    return read_list


def _mark(value: Any, _: str, path: str) -> FileMark:
    if not isinstance(value, dict):
        raise CorruptFileError(path, 0, f"{json_text(value)} is not a file")
    name, checksum = value.get("name"), value.get("checksum")
    if not isinstance(name, str) or not _is_file_of_a_log(name):
        raise CorruptFileError(path, 0, f"{json_text(name)} is not the name of a file of a log")
    if not isinstance(checksum, str) or not _CHECKSUM.fullmatch(checksum):
        raise CorruptFileError(path, 0, f"{name}: {json_text(checksum)} is not a checksum")
    return FileMark(name, _number(value.get("size_bytes"), "size_bytes", path), checksum)


def _is_file_of_a_log(name: str) -> bool:
    """Whether a name can lead to no other directory."""
    digits, _, kind = name.partition(".")
    is_numbered = len(digits) == OFFSET_DIGITS and offset_of(name) is not None
    return name == LEADER_EPOCH_CHECKPOINT or (
        is_numbered and f".{kind}" in (*SEGMENT_SUFFIXES, SNAPSHOT)
    )


_READERS: Mapping[Any, _Reader] = {  # by the type of a field
    int: _number,
    str: _text,
    int | None: _optional(_number),
    str | None: _optional(_text),
    tuple[str, ...]: _list(_text, "directories"),
    tuple[FileMark, ...]: _list(_mark, "files"),
}
