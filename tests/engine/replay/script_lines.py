"""A script's lines, and their fields: types, words, and which ones an operation needs."""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from compactor.json_types import is_of_type, json_text
from storage.files.local import LOCAL
from tests.engine.replay.script_queries import TIMES
from tests.engine.replay.script_values import Line, ScriptError

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_LOG = re.compile(r".+-[0-9]{1,9}")
_SETTINGS = ("config", "broker", "clock")  # whose fields are read and checked where they are used
_WITH_EPOCH = ("assign_epoch", "epoch_end_offset")  # of leaders, which nothing stands for
_OFFSET = int | str  # a number, or `end-1`

_NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "partition": ("topic",),
        "end_txn": ("pid",),
        "verify_txn": ("pid",),
        "mtime": ("segment", "ms"),
        "truncate_to": ("offset",),
        "truncate_fully": ("offset",),
        "truncate_log_fully": ("offset",),
        "truncate_logs": ("offsets",),
        "delete_records": ("offset",),
        "high_watermark": ("offset",),
        "assign_epoch": ("epoch", "offset"),
        "load_producer_state": ("offset",),
        "read": ("offset",),
        "offset_for_timestamp": ("ts",),
        "offset_metadata": ("offset",),
        "aborted_txns": ("offset", "upper"),
        "epoch_end_offset": ("epoch",),
        "epoch_for_offset": ("offset",),
        "damage": ("how",),
        "task": ("name",),
    }
)
_NEEDED_BY_DAMAGE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("write", "append"), ("hex",)),
        **dict.fromkeys(("rename", "copy"), ("to",)),
        **dict.fromkeys(("append_zeros", "zero"), ("length",)),
    }
)
_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        **dict.fromkeys(("op", "topic", "name", "file", "to", "suffix", "log", "hex"), str),
        **dict.fromkeys(("as", "origin", "how", "isolation", "codec", "marker"), str),
        **dict.fromkeys(("txn", "control", "empty", "fix_crc", "log_append_time", "clean"), bool),
        **dict.fromkeys(("force", "guard", "future", "commit", "min_one_message"), bool),
        **dict.fromkeys(("supports_epoch_bump", "follow_high_watermark", "make_directory"), bool),
        **dict.fromkeys(("log_dir",), bool),
        **dict.fromkeys(("leader_epoch", "to_magic", "transaction_version", "segment"), int),
        **dict.fromkeys(("snapshot", "dirs", "dir", "partition", "magic", "level", "span"), int),
        **dict.fromkeys(("batch_epoch", "coordinator_epoch", "max_bytes", "cut", "at"), int),
        **dict.fromkeys(("length", "xor", "recovery_point"), int),
        **dict.fromkeys(("pid", "ms"), int),
        **dict.fromkeys(("offset", "upper", "base_offset", "first_dirty", "uncleanable"), _OFFSET),
        **dict.fromkeys(("log_start_offset", "high_watermark", "epoch", "seq", "ts"), _OFFSET),
        "slots": int | None,
        "stray": bool | list[str],
        "offsets": dict[str, _OFFSET],
        "steps": list[int],
        "edit": list[tuple[int, str]],
        "records": list[dict[str, Any]],
        "batches": list[dict[str, Any]],
    }
)
_LENGTHS: Mapping[str, int] = MappingProxyType(
    {"dirs": 16, "to_magic": 2, "magic": 2, "length": 2**31 - 1}
)
_OF_RECORD: Mapping[str, Any] = MappingProxyType(
    {"ts": int, "k_hex": str, "v_hex": str, "h": list[tuple[str, Any]]}
)
_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "as": ("leader", "follower"),
        "codec": ("none", "gzip", "snappy", "lz4", "zstd"),
        "marker": ("commit", "abort"),
        "origin": ("client", "coordinator", "raft"),
        "isolation": ("log_end", "high_watermark", "committed"),
    }
)


def read_script(path: str) -> list[Line | None]:
    """The lines of a script; None for one that is empty or begins with #."""
    found: list[Line | None] = []
    try:
        text = LOCAL.read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise ScriptError(f"byte {error.start}: not UTF-8") from error
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line) if line.strip() and not line.startswith("#") else None
        except (ValueError, RecursionError) as error:
            raise ScriptError(f"line {number}: {error}") from error
        if value is not None and not (isinstance(value, dict) and "op" in value):
            raise ScriptError(f'line {number}: expected an object with an "op"')
        found.append(value)
    return found


def check_line(number: int, line: Line) -> None:
    """Raise ScriptError, which names the line, where a field is missing or is none of its kind."""
    op = line["op"]
    if not isinstance(op, str):
        raise ScriptError(f"line {number}: op: {json_text(op, 40)} is no operation")
    place = f"line {number}, {op}"
    needed = _NEEDED.get(op, ())
    if op == "damage" and isinstance(line.get("how"), str):
        needed += _NEEDED_BY_DAMAGE.get(line["how"], ())
    if op == "end_txn" and "hex" not in line:
        needed += ("commit",)
    for name in needed:
        if name not in line:
            raise ScriptError(f"{place}: {name} is missing")
    if op in _SETTINGS:
        return
    if op in _WITH_EPOCH and not is_of_type(line["epoch"], int):
        raise _wrong(place, "epoch", line["epoch"])
    if op == "offset_for_timestamp" and not (
        is_of_type(line["ts"], int) or (isinstance(line["ts"], str) and line["ts"] in TIMES)
    ):
        raise _wrong(place, "ts", line["ts"])
    _check_fields(line, place)
    if op != "damage" and not _LOG.fullmatch(line.get("log", "t-0")):  # there it is a directory
        raise _wrong(place, "log", line["log"])
    for batch in line.get("batches", []):
        _check_fields(batch, place)


def _check_fields(fields: Line, place: str) -> None:
    for name, value in fields.items():
        if name in _TYPES and not is_of_type(value, _TYPES[name]):
            raise _wrong(place, name, value)
        if name in _WORDS and value not in _WORDS[name]:
            raise ScriptError(
                f"{place}: {name}: {json_text(value)} is none of {', '.join(_WORDS[name])}"
            )
        if name in _LENGTHS and not 0 <= value <= _LENGTHS[name]:
            raise _wrong(place, name, value)
    if not _HEX.fullmatch(fields.get("hex", "")):
        raise _wrong(place, "hex", fields["hex"])
    if "marker" in fields and "pid" not in fields:
        raise ScriptError(f"{place}: pid is missing")
    for _, patch in fields.get("edit", []):
        if not _HEX.fullmatch(patch):
            raise _wrong(place, "edit", patch)
    for record in fields.get("records", []):
        _check_record(record, place)


def _check_record(record: Line, place: str) -> None:
    for name, value in record.items():
        is_right = name not in _OF_RECORD or is_of_type(value, _OF_RECORD[name])
        if not is_right or (name.endswith("_hex") and not _HEX.fullmatch(value)):
            raise _wrong(place, name, value)


def _wrong(place: str, name: str, value: object) -> ScriptError:
    return ScriptError(f"{place}: {name}: {json_text(value, 60)} is no value of it")
