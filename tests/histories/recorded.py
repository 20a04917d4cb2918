"""A broker that was there once: what Kafka answered to a history, and the files that it left.

A recording is good for as long as Kafka would find the same files: where it opens or reads them, a
digest of all of them is held against the one of then. So a history is told again without Kafka, and
anything that we do otherwise than when it was recorded is found, at the step where it happens.
"""

import base64
import hashlib
import json
import lzma
import os
import shutil
from pathlib import Path
from typing import Any

from tests.histories.broker_process import Answer, Broker

OPENS, ENDS = ("start", "look"), ("stop",)
LOCK_FILE = ".lock"
Files = dict[str, list[Any]]  # by path below the root: contents in base64, time of change in ms


class DiffersError(Exception):
    """The history does not go as it went when it was recorded."""


class RecordingBroker:
    """Asks a broker, and writes down what comes of it."""

    def __init__(self, broker: Broker, root: Path) -> None:
        self._broker, self._root = broker, root
        self._entries: list[dict[str, Any]] = []

    def ask(self, what: str, **question: Any) -> Answer:
        entry: dict[str, Any] = {"ask": what, "asked": _asked(question, self._root)}
        if what in OPENS:
            entry["digest"] = _digest(self._root)
        entry["answer"] = self._broker.ask(what, **question)
        if what in ENDS:
            entry["files"] = _files(self._root)
        self._entries.append(entry)
        answer: Answer = entry["answer"]
        return answer

    def save(self, path: Path) -> None:
        path.write_bytes(lzma.compress(json.dumps(self._entries).encode(), preset=9))


class RecordedBroker:
    """Answers as it was recorded, or raises DiffersError."""

    def __init__(self, path: Path, root: Path) -> None:
        self._root = root
        self._entries = iter(json.loads(lzma.decompress(path.read_bytes())))

    def ask(self, what: str, **question: Any) -> Answer:
        entry = next(self._entries, None)
        if entry is None or entry["ask"] != what:
            raise DiffersError(f"{what} is asked, recorded is {entry and entry['ask']}")
        if entry["asked"] != _asked(question, self._root):
            raise DiffersError(f"{what} asks for something else than was recorded")
        if what in OPENS and entry["digest"] != _digest(self._root):
            raise DiffersError(f"{what} finds other files than were recorded")
        if what in ENDS:
            _put(self._root, entry["files"])
        answer: Answer = entry["answer"]
        return answer


def _asked(question: dict[str, Any], root: Path) -> str:
    return json.dumps(question, sort_keys=True).replace(str(root), "ROOT")


def _files(root: Path) -> Files:
    return {
        str(path.relative_to(root)): [
            base64.b64encode(path.read_bytes()).decode(),
            path.stat().st_mtime_ns // 1_000_000,
        ]
        for path in _paths(root)
    }


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    for path in _paths(root):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _paths(root: Path) -> list[Path]:
    """Of every file in the log directories."""
    found = (path for path in root.glob("d?/**/*") if path.is_file() and path.name != LOCK_FILE)
    return sorted(found)


def _put(root: Path, files: Files) -> None:
    """What is the same stays the same file: a run may have kept it under another name."""
    for path in _paths(root):
        if str(path.relative_to(root)) not in files:
            path.unlink()
    for name, (contents, time_ms) in files.items():
        path, data = root / name, base64.b64decode(contents)
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.unlink(missing_ok=True)
            path.write_bytes(data)
        os.utime(path, ns=(time_ms * 1_000_000,) * 2)
    for directory in root.glob("d?/*"):
        if directory.is_dir() and not any(directory.iterdir()):
            shutil.rmtree(directory)
