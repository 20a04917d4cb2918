"""Whether a round over a recovered log directory gives what Kafka's cleaner gives there."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from storage.file_names import LOG, SEGMENT_SUFFIXES, SNAPSHOT
from storage.formats import checkpoint
from tests.crash import stories
from tests.crash.states import STAGED, TEMPORARY
from tests.crash.stories import NOW_MS, Story
from tests.oracle import kafka

LATER_MS = NOW_MS + 2_000  # behind the horizons that the first round gave
CHECKPOINTS = (
    checkpoint.CLEANER_OFFSET,
    checkpoint.RECOVERY_POINT,
    checkpoint.LOG_START,
    checkpoint.REPLICATION,
)
OPENINGS = 2  # one raises the log start to the first segment's base, one cuts the epochs there
SNAPSHOT_OF_NOBODY = 10  # bytes: Kafka writes such ones wherever it opens a log

Digest = frozenset[tuple[str, bytes, int]]
Files = Mapping[str, tuple[bytes, int]]


def digest_of(log_dir: Path) -> Digest:
    """Equal for log directories with the same files, contents and times of logs.

    Whatever the next round sweeps away is left out.
    """
    return frozenset(
        (
            str(path.relative_to(log_dir)),
            path.read_bytes(),
            path.stat().st_mtime_ns if path.suffix == LOG else 0,
        )
        for path in log_dir.rglob("*")
        if path.is_file() and not _is_swept(path)
    )


def _is_swept(path: Path) -> bool:
    return STAGED in path.name or path.name.endswith(TEMPORARY)


def problems_of_next_rounds(
    story: Story, recovered: Sequence[Path], work: Path
) -> Mapping[Path, list[str]]:
    """All dirty once more, cleaned by Kafka, and by ours. The directories stay as they are.

    Kafka opens and closes them before and after, for what it changes whenever it does.
    """
    configs = work / "topic-configs.json"
    configs.write_text(json.dumps(story.topic_configs))
    clock = (configs, "--now", str(LATER_MS))
    both = work / "both"
    kafkas, ours = ([both / f"{who}-{i:05}" for i in range(len(recovered))] for who in "ko")
    for log_dir, copy in zip(recovered, kafkas, strict=True):
        shutil.copytree(log_dir, copy)
        (copy / checkpoint.CLEANER_OFFSET).unlink(missing_ok=True)
    kafka.run("recover-all", both, *clock)
    for copy, other in zip(kafkas, ours, strict=True):
        shutil.copytree(copy, other)
    left = []
    for log_dir in ours:
        stories.run(story, log_dir, work / "work", LATER_MS)
        left.append(_files(log_dir))
    for _ in range(story.kafka_rounds):
        kafka.run("clean-many", both, *clock, "--only", "k-")
    for _ in range(OPENINGS):
        kafka.run("recover-all", both, *clock)
    found = map(_differences, left, kafkas, ours)
    problems = dict(zip(recovered, map(list, found), strict=True))
    shutil.rmtree(both)
    return problems


def _differences(left: Files, kafkas: Path, ours: Path) -> Iterator[str]:
    """left: what ours had made before Kafka opened it."""
    for name in CHECKPOINTS:
        entries = [checkpoint.read(str(root / name)) for root in (kafkas, ours)]
        if entries[0] != entries[1]:
            yield f"next round, {name}: Kafka {entries[0]}, ours {entries[1]}"
    want, have = _files(kafkas), _files(ours)
    for name in sorted(want.keys() | have.keys()):
        if STAGED in name or name.endswith(TEMPORARY):
            continue  # Kafka leaves them; ours is looked at below
        if want.get(name) != have.get(name):
            yield f"next round, {name}: Kafka {_told(want, name)}, ours {_told(have, name)}"
        if name.endswith(SEGMENT_SUFFIXES) and left.get(name) != have.get(name):
            yield f"next round, {name}: ours {_told(left, name)}, opened {_told(have, name)}"
    for name in left:
        if STAGED in name or name.endswith(TEMPORARY):
            yield f"next round, {name} is left over"


def _files(log_dir: Path) -> Files:
    """Contents, and the times of logs that hold something; an empty one may have been rolled."""
    return {
        str(path.relative_to(log_dir)): (path.read_bytes(), _time_ms(path))
        for path in log_dir.rglob("*")
        if path.is_file()
        if path.suffix != SNAPSHOT or path.stat().st_size != SNAPSHOT_OF_NOBODY
        if path.name not in CHECKPOINTS
    }


def _time_ms(path: Path) -> int:
    stat = path.stat()
    return stat.st_mtime_ns // 1_000_000 if path.suffix == LOG and stat.st_size else 0


def _told(files: Files, name: str) -> str:
    if name not in files:
        return "has none"
    data, mtime_ms = files[name]
    return f"{len(data)} bytes {data[-40:]!r} of {mtime_ms}"
