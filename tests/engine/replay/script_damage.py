"""What a disk, or an operation that was cut short, does to files of a closed log."""

import errno
import os
from typing import Any

from compactor.json_types import json_text
from storage.file_names import LOG, SEGMENT_SUFFIXES, SNAPSHOT
from storage.files.files import Files, remove_if_exists
from tests.engine.replay.script_values import Line, ScriptError


def damage(files: Files, log_dir: str, partition_dir: str, line: Line) -> dict[str, Any]:
    """Do it; tell which file it was, and its size before and after."""
    path = _path(files, log_dir, partition_dir, line)
    if path is None:
        return {"file": None}
    before = files.read_bytes(path) if files.exists(path) else None
    told: dict[str, Any] = {"file": os.path.basename(path)}
    told["before"] = None if before is None else len(before)
    how = line["how"]
    if how == "delete":
        remove_if_exists(files, path)
    elif how == "write":
        if line.get("make_directory") and not files.is_directory(os.path.dirname(path)):
            files.make_directory(os.path.dirname(path))
        _write(files, path, bytes.fromhex(line["hex"]))
    elif before is not None:
        _change(files, path, before, line)
    after = files.look_up(path)
    return told | {"after": None if after is None else after.size_bytes}


def _path(files: Files, log_dir: str, partition_dir: str, line: Line) -> str | None:
    if "file" in line:
        return os.path.join(log_dir if line.get("log_dir") else partition_dir, line["file"])
    kind = "snapshot" if "snapshot" in line else "segment"
    names = _names(files, partition_dir, SNAPSHOT if kind == "snapshot" else LOG)
    if not names:
        return None
    name = names[line[kind] % len(names)]
    if kind == "segment":
        name = name.replace(LOG, line.get("suffix", LOG))
    return os.path.join(partition_dir, name)


def _names(files: Files, directory: str, suffix: str) -> list[str]:
    if not files.is_directory(directory):
        return []
    found = files.list_directory(directory)
    return sorted(entry.name for entry in found if entry.name.endswith(suffix))


def _change(files: Files, path: str, before: bytes, line: Line) -> None:
    how = line["how"]
    if how == "rename":
        target = path + line["to"]
        if files.exists(target):  # which Java's move does not replace
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        files.rename(path, target)
    elif how == "copy":
        _write(files, path + line["to"], before)
    elif how == "join":
        _join(files, path, before)
    else:
        _write(files, path, _changed(before, line))


def _join(files: Files, path: str, before: bytes) -> None:
    """The next segment's batches go to the end of this one, and its files are gone."""
    directory = os.path.dirname(path)
    names = _names(files, directory, LOG)
    after = names.index(os.path.basename(path)) + 1
    if after == len(names):
        return
    following = os.path.join(directory, names[after])
    _write(files, path, before + files.read_bytes(following))
    for suffix in SEGMENT_SUFFIXES:
        remove_if_exists(files, following.replace(LOG, suffix))


def _changed(before: bytes, line: Line) -> bytes:
    at = line.get("at", 0) % len(before) if before else 0
    how, out = line["how"], bytearray(before)
    if how == "truncate":
        del out[at:]
    elif how == "append":
        out += bytes.fromhex(line["hex"])
    elif how == "append_zeros":
        out += bytes(line["length"])
    elif how == "zero":
        end = min(len(out), at + line["length"])
        out[at:end] = bytes(end - at)
    elif how == "flip":
        if out:
            out[at] ^= line.get("xor", 1)
    else:
        raise ScriptError(f"{json_text(how)} is no damage")
    return bytes(out)


def _write(files: Files, path: str, data: bytes) -> None:
    file = files.open_to_change(path, create=True)
    try:
        file.truncate(0)
        file.write(0, data)
    finally:
        file.close()
