"""The golden corpora: logs that Kafka wrote, and what Kafka's cleaner made of them.

One fleet in one archive; PROVENANCE.md tells how it was made. Tests read it and never write to it.
"""

import atexit
import functools
import io
import json
import lzma
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.fleet import Fleet, Kafkas, outcomes_of

ARCHIVE = Path(__file__).with_name("corpora.tar.xz")


@functools.cache
def extracted() -> Fleet:
    """The fleet on disk, with its times of modification; gone when the process ends."""
    root = Path(tempfile.mkdtemp(prefix="golden-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    unpacked = io.BytesIO(lzma.decompress(ARCHIVE.read_bytes()))  # as a stream: 40 times as long
    with tarfile.open(fileobj=unpacked, mode="r:") as archive:
        for entry in archive:
            path = root / entry.name
            if entry.isdir():
                path.mkdir()
                continue
            content = archive.extractfile(entry)
            assert content is not None, entry.name
            write_sparse(path, content.read())
            mtime_ns = round(entry.mtime * 1000) * 1_000_000  # whole milliseconds were packed
            os.utime(path, ns=(mtime_ns, mtime_ns))
    return Fleet(root)


def write_sparse(path: Path, data: bytes) -> None:
    """Without room on disk for the zeros at its end: an open index is 10 MiB of them."""
    with path.open("wb") as out:
        out.write(data.rstrip(b"\0"))
        out.truncate(len(data))


@functools.cache
def outcomes() -> dict[str, Kafkas]:
    """Kafka's outcome of every log."""
    return outcomes_of(_first_file()["results"])


@functools.cache
def _first_file() -> Any:
    """Clock and outcomes, without unpacking the rest of the archive."""
    with tarfile.open(ARCHIVE, "r|xz") as archive:
        first = archive.next()
        assert first is not None and first.name == "fleet.json"
        content = archive.extractfile(first)
        assert content is not None
        return json.load(content)


def partitions() -> list[str]:
    """TOPIC-PARTITION of every log."""
    return sorted(outcomes())


def now_ms() -> int:
    """The clock at which Kafka cleaned them."""
    return int(_first_file()["now_ms"])
