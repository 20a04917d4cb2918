"""Small partitions by the hundred, to be damaged each in its own way; and what was there before."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from storage.formats import checkpoint, clean_shutdown
from tests.support.file_states import State
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir
from tests.support.reference_batch import split

TIME_MS = 1_700_000_000_000
SEGMENTS, BATCHES = (0, 6, 12), 3  # base offsets, the last one of the active segment
END_OFFSET = 18
LOG = [f"{base:020}.log" for base in SEGMENTS]
INDEX = [f"{base:020}.index" for base in SEGMENTS]
KEPT = 2  # records of 12 that a cleaning leaves: two keys


def write_template(root: Path) -> Path:
    """One partition: three segments of three batches of two records, each batch indexed."""
    segments = tuple(
        tuple(
            Batch(
                (
                    Message(b"a", b"%d" % offset, TIME_MS + offset),
                    Message(b"b", b"", TIME_MS + offset),
                )
            )
            for offset in range(base, base + 2 * BATCHES, 2)
        )
        for base in SEGMENTS
    )
    build_log_dir(root, BuiltLog("template", 0, segments, index_interval_bytes=0))
    return root / "template-0"


def make_log_dir(root: Path, template: Path, names: Iterable[str]) -> None:
    """A log directory of partitions 0 with these topics, each with copies of the files."""
    root.mkdir()
    for file in template.parent.iterdir():
        if file.is_file():
            (root / file.name).write_bytes(file.read_bytes())
    topics = list(names)
    for topic in topics:
        (root / f"{topic}-0").mkdir()
        for file in template.iterdir():
            shutil.copy2(file, root / f"{topic}-0" / file.name)
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(root / name), {(topic, 0): END_OFFSET for topic in topics})
    assert clean_shutdown.exists(str(root))


def put(path: Path, data: bytes) -> None:
    """Let a file hold other bytes, with the time that it had."""
    times = path.stat() if path.exists() else None
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    if times is not None:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def batch_positions(log: Path) -> list[int]:
    """Where each batch starts, and the end of the file."""
    positions = [0]
    for batch in split(log.read_bytes()):
        positions.append(positions[-1] + len(batch))
    return positions


def patched(data: bytes, position: int, other: bytes) -> bytes:
    return data[:position] + other + data[position + len(other) :]


def swapped_logs(before: State, after: State) -> int:
    """How many logs have their one group swapped in; every other file has to be as it was."""
    first, second = (f"{base:020}." for base in SEGMENTS[:2])
    swapped = 0
    for directory in {os.path.dirname(path) for path in before | after}:
        was, is_now = (
            {os.path.basename(p): held for p, held in state.items() if os.path.dirname(p) == own}
            for state, own in ((before, directory), (after, directory))
        )
        if was == is_now:
            continue
        assert was.keys() - is_now.keys() == {name for name in was if name.startswith(second)}
        assert is_now.keys() <= was.keys()
        replaced = {name for name in is_now if is_now[name] != was[name]}
        assert replaced == {first + kind for kind in ("log", "index", "timeindex")}
        assert sum(batch_records(batch) for batch in split(is_now[LOG[0]][0])) == KEPT
        swapped += 1
    return swapped


def batch_records(batch: bytes) -> int:
    return int.from_bytes(batch[57:61], "big")
