"""Copies of golden logs by the hundred in one log directory, each damaged in its own way.

What is damaged are logs that Kafka wrote; what a sound one becomes is what Kafka's cleaner made of
it (tests/golden). A case is a partition with a topic of its own, so that one round takes them all.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from compactor.settings.config import Config
from tests.golden import copies, corpora
from tests.golden.copies import GoldenLog, write_copies
from tests.oracle.compare import checkpoint_entries
from tests.support.reference_batch import CODEC_BITS, HEADER, SNAPPY, sealed, split

SOUND = (  # each with batches to drop and to rebuild, and an active segment
    *(f"e23-first-dropped-{codec}-0" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    *(f"c11.12-mixed-with-v2-v{n}-none-0" for n in (0, 1)),
    *(
        f"c11.12-first-and-last-gone-v{n}-{codec}-0"
        for n in (0, 1)
        for codec in ("none", "gzip", "snappy", "lz4")
    ),
    "c11.7-horizon-outlives-tombstone-zstd-0",
    "e27-last-of-producer-0",
    "e41-committed-partly-superseded-0",
    "e44-aborted-first-round-0",
    "e47-one-open-one-aborted-0",
    "e50-pairs-0",
    "e51-abort-in-active-segment-0",
    "c8.2-checkpoint-3-0",  # with an offset index
    "e62-mid-segment-0-0",  # likewise
)
RAW_SNAPPY = "raw-snappy-0"  # librdkafka's framing: no golden log of Kafka's own clients has it
FRAMED_SNAPPY = "e23-first-dropped-snappy-0"
XERIAL_BYTES = 16 + 4  # before the one block of a small batch
Files = dict[str, bytes]
Change = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Case:
    """One damage: what becomes of one file of one sound log."""

    source: str
    file: str
    what: str
    change: Change

    def __str__(self) -> str:
        return f"{self.source}/{self.file}: {self.what}"


class SoundLog(NamedTuple):
    """A log as Kafka wrote it, and what Kafka's cleaner made of it."""

    golden: GoldenLog
    after: Files
    end_offset: int  # exclusive; of what was cleaned

    @property
    def before(self) -> Path:
        return self.golden.before


@cache
def sound_log(name: str) -> SoundLog:
    fleet = corpora.extracted()
    model = FRAMED_SNAPPY if name == RAW_SNAPPY else name
    golden, after = copies.golden_log(model), files_in(fleet.after / model)
    if name == RAW_SNAPPY:  # what is rebuilt gets Kafka's frame
        after = _with_unframed_copies(golden.before, after)
        golden = golden._replace(before=_without_frames(golden.before))
    return SoundLog(golden, after, checkpoint_entries(fleet.after)[model])


def all_sound() -> tuple[str, ...]:
    return (*SOUND, RAW_SNAPPY)


def files_in(directory: Path) -> Files:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def resized(batch: bytes) -> bytes:
    """The batch with the length and the checksum that fit it."""
    return sealed(batch[:8] + (len(batch) - 12).to_bytes(4, "big") + batch[12:])


def _without_frames(before: Path) -> Path:
    """The same log as librdkafka would have sent it: a raw block in the place of the stream."""
    made = corpora.extracted().root / RAW_SNAPPY
    if not made.exists():
        shutil.copytree(before, made)
        for path in made.glob("*.log"):
            stat = path.stat()
            path.write_bytes(_unframed_log(path.read_bytes(), path.name))
            os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    return made


def _with_unframed_copies(before: Path, after: Files) -> Files:
    framed = {raw for path in before.glob("*.log") for raw in split(path.read_bytes())}
    return {
        name: b"".join(_unframed(raw) if raw in framed else raw for raw in split(data))
        if name.endswith(".log")
        else data
        for name, data in after.items()
    }


def _unframed_log(data: bytes, name: str) -> bytes:
    if not name.endswith(".log"):
        return data
    return b"".join(map(_unframed, split(data)))


def _unframed(batch: bytes) -> bytes:
    if batch[22] & CODEC_BITS != SNAPPY:
        return batch
    return resized(batch[: HEADER.size] + batch[HEADER.size + XERIAL_BYTES :])


def write_log_dir(root: Path, cases: Iterable[Case]) -> dict[str, Case]:
    """A log directory of partitions, by name, each damaged."""
    named = {f"case{number}-0": case for number, case in enumerate(cases)}
    write_copies(root, {name: sound_log(case.source).golden for name, case in named.items()})
    for name, case in named.items():
        source, target = sound_log(case.source).before / case.file, root / name / case.file
        target.write_bytes(case.change(source.read_bytes()))
        mtime_ns = source.stat().st_mtime_ns
        os.utime(target, ns=(mtime_ns, mtime_ns))
    return named


def config_of(named: dict[str, Case], path: Path) -> Config:
    return copies.config_of(
        {name: sound_log(case.source).golden for name, case in named.items()}, path
    )


def log_files(name: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    """The files of a sound log that end so, by rising base offset."""
    for path in sorted(sound_log(name).before.glob(f"*{suffix}")):
        yield path.name, path.read_bytes()
