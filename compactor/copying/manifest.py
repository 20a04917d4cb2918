"""The manifest of a copy: every file with length and checksum. It is written last.

    {"format": "compactor-copy", "schema_version": 1,
     "source": "/data/kafka",                the log directory that was copied
     "run_id": "3f9c2b1a", "version": "0.1.0", "finished_at": "2026-11-23T01:18:52.000Z",
     "kafka": VERSION,                       whose answer the cleaning was; null: not told
     "may_broker_start": true,               whether a broker may be started on the copy
     "why_not": null,                        else in words why not
     "missing": {"orders-3": "why"},         logs that are not in the copy and should be
     "not_wanted": ["events-0"],             logs that were not asked for (--compacted-only)
     "files": [{"name": "orders-0/00000000000000000000.log",   relative to the copy, by name
                "size_bytes": 1234,
                "checksum": "0123456789abcdef"}]}              XXH3, 64 bits: xxhsum -H3

What is not in it: the manifest itself.
"""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compactor.copying.contents import Contents
from compactor.errors import RefusedError
from compactor.json_types import json_text
from compactor.originals.kept_manifest import FileMark
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.log.copy_marks import MANIFEST, DirectoryState, directory_state

FORMAT, VERSION = "compactor-copy", 1


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
    """Raise FileNotFoundError where there is none, CorruptFileError for one that was not written
    here."""
    path = os.path.join(log_dir, MANIFEST)
    try:
        fields = json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, 0, f"not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise CorruptFileError(path, 0, f"not a {FORMAT} file")
    if fields.get("schema_version") != VERSION:
        problem = f"version {json_text(fields.get('schema_version'))}, expected {VERSION}"
        raise UnsupportedFormatError(path, 0, problem)
    try:
        return Manifest(
            source=_text(fields["source"]),
            run_id=_text(fields["run_id"]),
            version=_text(fields["version"]),
            finished_at=_text(fields["finished_at"]),
            why_not=None if fields["why_not"] is None else _text(fields["why_not"]),
            missing={_text(name): _text(why) for name, why in fields["missing"].items()},
            not_wanted=tuple(map(_text, fields["not_wanted"])),
            files=tuple(_marks(fields["files"])),
            kafka=None if fields.get("kafka") is None else _text(fields["kafka"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(path, 0, f"not what was written there: {error}") from error


def lacking_in(contents: Contents, files: Files) -> tuple[dict[str, str], tuple[str, ...]]:
    """What a log directory that is a copy itself lacks, by its own manifest: the missing logs, each
    with the reason, and those that were not wanted. A log that has come since is not among them.

    Raise RefusedError where a copy lacks something, or may, and its manifest cannot say what.
    """
    path = contents.path
    try:
        known = read(path, files)
    except FileNotFoundError as error:
        if directory_state(path, files) is not DirectoryState.COPY_TO_KEEP:
            return {}, ()
        raise _unknown(f"{error.filename}: is not there") from error
    except CorruptFileError as error:
        raise _unknown(str(error)) from error
    here = {log.name for log in contents.logs} | {*contents.not_wanted}
    missing = {name: why for name, why in known.missing.items() if name not in here}
    return missing, tuple(name for name in known.not_wanted if name not in here)


def _unknown(problem: str) -> RefusedError:
    return RefusedError(
        f"{problem}. Nothing else says which logs are missing from this copy. Copy the original "
        "instead. Nothing was changed",
        ReasonCode.COPY_TO_KEEP,
    )


def _marks(values: Iterable[Mapping[str, Any]]) -> Iterable[FileMark]:
    for value in values:
        size_bytes = value["size_bytes"]
        if not isinstance(size_bytes, int):
            raise TypeError(f"{json_text(size_bytes)} is not a length")
        yield FileMark(_text(value["name"]), size_bytes, _text(value["checksum"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{json_text(value)} is not text")
    return value
