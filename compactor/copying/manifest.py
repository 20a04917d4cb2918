"""The manifest of a copy: every file with length and checksum. It is written last.

    {"format": "compactor-copy", "schema_version": 1,
     "source": "/data/kafka",                the log directory that was copied
     "run_id": "3f9c2b1a", "version": "0.1.0", "finished_at": "2026-11-23T01:18:52.000Z",
     "kafka": VERSION,                       whose answer the cleaning was; null: unknown
     "may_broker_start": true,               whether a broker may be started on the copy
     "why_not": null,                        else in words why not
     "missing": {"orders-3": "why"},         logs that are not in the copy and should be
     "not_wanted": ["events-0"],             logs that were not asked for (--compacted-only)
     "files": [{"name": "orders-0/00000000000000000000.log",   relative to the copy, by name
                "size_bytes": 1234,
                "checksum": "0123456789abcdef"}]}              XXH3, 64 bits: xxhsum -H3

The manifest does not list itself.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from compactor.json_types import json_text, text_in
from compactor.log_checks.findings import Finding, difference, finding_of
from compactor.log_dirs.directory_state import NO_BROKER, UNFINISHED
from compactor.log_dirs.kept_files import FileMark, mark_of
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.copy_marks import FORMAT, MANIFEST, VERSION, manifest_fields
from storage.log.log_dir_lock import LOCK_FILE


class Manifest(NamedTuple):
    """What a copy holds."""

    source: str
    run_id: str
    version: str  # of this project
    finished_at: str  # ISO 8601
    why_not: str | None  # a broker may start there; None: it may
    missing: Mapping[str, str]  # log -> why it is not there
    not_wanted: tuple[str, ...]
    files: tuple[FileMark, ...]  # names relative to the copy, sorted
    kafka: str | None = None  # the version whose answer the cleaning was; None: not told


def write(log_dir: str, manifest: Manifest, files: Files) -> None:
    """Leave it in a copy, in one step."""
    fields: dict[str, Any] = {"format": FORMAT, "schema_version": VERSION}
    fields |= {
        "source": manifest.source,
        "run_id": manifest.run_id,
        "version": manifest.version,
        "finished_at": manifest.finished_at,
        "kafka": manifest.kafka,
        "may_broker_start": manifest.why_not is None,
        "why_not": manifest.why_not,
        "missing": dict(manifest.missing),
        "not_wanted": list(manifest.not_wanted),
        "files": [mark._asdict() for mark in manifest.files],
    }
    text = json.dumps(fields, indent=1) + "\n"
    files.replace_file(os.path.join(log_dir, MANIFEST), text.encode("ascii"))


def read(log_dir: str, files: Files) -> Manifest:
    """Read the manifest of a copy.

    Raise FileNotFoundError without one, CorruptFileError for one that this project did not write.
    """
    path = os.path.join(log_dir, MANIFEST)
    fields = manifest_fields(log_dir, files)
    try:
        return Manifest(
            source=text_in(fields["source"]),
            run_id=text_in(fields["run_id"]),
            version=text_in(fields["version"]),
            finished_at=text_in(fields["finished_at"]),
            why_not=None if fields["why_not"] is None else text_in(fields["why_not"]),
            missing={text_in(name): text_in(why) for name, why in fields["missing"].items()},
            not_wanted=tuple(map(text_in, fields["not_wanted"])),
            files=tuple(_marks(fields["files"])),
            kafka=None if fields.get("kafka") is None else text_in(fields["kafka"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(path, 0, f"not what was written there: {error}") from error


def _marks(values: Iterable[Mapping[str, Any]]) -> Iterable[FileMark]:
    for value in values:
        size_bytes = value["size_bytes"]
        if not isinstance(size_bytes, int):
            raise TypeError(f"{json_text(size_bytes)} is not a length")
        yield FileMark(text_in(value["name"]), size_bytes, text_in(value["checksum"]))


READ_THREADS = 4
_NOT_LISTED = (MANIFEST, LOCK_FILE)
_OUR_DIRECTORIES = (UNFINISHED, NO_BROKER)


def files_in(log_dir: str, files: Files) -> dict[str, int]:
    """Every file of a copy by its name relative to it, with its size; but for the manifest."""
    found = {}
    for entry in files.list_directory(log_dir):
        if not entry.is_dir and entry.name not in _NOT_LISTED:
            found[entry.name] = entry.size_bytes
        elif entry.is_dir and entry.name not in _OUR_DIRECTORIES:
            for file in files.list_directory(os.path.join(log_dir, entry.name)):
                found[os.path.join(entry.name, file.name)] = file.size_bytes
    return dict(sorted(found.items()))


def marks_of(log_dir: str, names: list[str], advance: Callable[[int], object]) -> list[FileMark]:
    """Length and checksum of each file. advance: is called with bytes read since the last call."""
    marks = []
    for _, found in _read(log_dir, names, advance):
        if not isinstance(found, FileMark):
            raise found
        marks.append(found)
    return marks


def _read(
    log_dir: str, names: list[str], advance: Callable[[int], object]
) -> Iterator[tuple[str, FileMark | OSError | CorruptFileError]]:
    """Several at once; in the order of the names, each with its mark, or why it has none."""

    def mark(name: str) -> FileMark | OSError | CorruptFileError:
        try:
            return mark_of(LOCAL, os.path.join(log_dir, name), name)
        except (OSError, CorruptFileError) as error:
            return error

    threads = ThreadPoolExecutor(READ_THREADS)
    try:
        for name, found in zip(names, threads.map(mark, names), strict=True):
            if isinstance(found, FileMark):
                advance(found.size_bytes)
            yield name, found
    finally:
        threads.shutdown(cancel_futures=True)


def check(
    log_dir: str, manifest: Manifest, advance: Callable[[int], object], files: Files
) -> Iterator[Finding]:
    """Check that the files are those of the manifest, and that the run has finished the copy."""
    unfinished = os.path.join(log_dir, UNFINISHED)
    if files.exists(unfinished):
        yield difference(unfinished, 0, "the run that made this copy has not finished it")
    found = files_in(log_dir, files)
    listed = {mark.name: mark for mark in manifest.files}
    for name in sorted(found.keys() - listed.keys()):
        yield difference(os.path.join(log_dir, name), 0, f"not in {MANIFEST}: it came later")
    for name, mark in listed.items():
        path = os.path.join(log_dir, name)
        if name not in found:
            yield difference(path, 0, f"is gone; {MANIFEST} has it")
        elif found[name] != mark.size_bytes:
            problem = f"has {found[name]:,} bytes, in {MANIFEST} {mark.size_bytes:,}"
            yield difference(path, 0, problem)
    same_size = [name for name, mark in listed.items() if found.get(name) == mark.size_bytes]
    for name, read in _read(log_dir, same_size, advance):
        path = os.path.join(log_dir, name)
        if not isinstance(read, FileMark):
            yield finding_of(read, path)
        elif read.checksum != listed[name].checksum:
            yield difference(path, 0, f"has other bytes than {MANIFEST} says")
