"""A story done without a crash: every operation on a file, and how the log stood between them."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from storage.file_names import LOG
from storage.files.local import LOCAL
from storage.formats import checkpoint
from tests.crash.operations import Record
from tests.crash.recorder import Recorder
from tests.engine.crash.stories import Story
from tests.engine.replay.replayed import replay_in
from tests.support.reference_batch import HEADER, ReferenceBatch, decode, sealed, split

PARTITION = "t-0"
FLUSHING = ("flush", "close")


class Held(NamedTuple):
    """A batch as it is in a file."""

    raw: bytes
    batch: ReferenceBatch


class Stage(NamedTuple):
    """The log between two lines of a story."""

    operations: int  # that had been done by then
    batches: dict[int, Held]  # by base offset
    log_start: int
    log_end: int
    recovery_point: int  # what lies below it was flushed
    is_flushed: bool  # all of it, just now


class Recorded(NamedTuple):
    story: Story
    record: Record
    stages: Sequence[Stage]


def recorded(story: Story, work: Path) -> Recorded:
    """Do a story in an empty directory, which is removed again."""
    log_dir = work / "logs"
    lines = iter(replay_in(LOCAL, str(log_dir)).lines([*story.before, *story.cut_short]))
    told = [_next(lines) for _ in story.before][-1]
    recorder = Recorder(log_dir, each_write=True)
    stages = [stage_of(0, log_dir, told, None)]
    with recorder.recording():
        for _ in story.cut_short:
            told = _next(lines)
            recorder.look()
            done = len(recorder.record.operations)
            stages.append(stage_of(done, log_dir, told, stages[-1]))
    assert not recorder.unseen, recorder.unseen
    list(lines)  # which lets go of the files
    shutil.rmtree(log_dir)
    return Recorded(story, recorder.record, stages)


def _next(lines: Any) -> dict[str, Any]:
    told: dict[str, Any] = next(lines)
    assert "error" not in told, told
    return told


def stage_of(done: int, log_dir: Path, told: dict[str, Any], was: Stage | None) -> Stage:
    """How the log stands after so many operations. was: before the last line; None: at first."""
    batches, state = held_in(log_dir / PARTITION), told["state"]
    is_flushed = was is None or told["op"] in FLUSHING
    if state is None:  # closed, which flushes, or not opened yet
        end = max(each.batch.last_offset + 1 for each in batches.values())
        points = checkpoint.read(str(log_dir / checkpoint.RECOVERY_POINT))
        flushed = end if was else points.get(("t", 0), 0)
        return Stage(done, batches, was.log_start if was else 0, end, flushed, is_flushed)
    return Stage(
        done,
        batches,
        state["log_start_offset"],
        state["log_end_offset"],
        state["recovery_point"],
        is_flushed,
    )


def held_in(partition: Path) -> dict[int, Held]:
    """The batches of the files that are a log's, as far as they are sound in length."""
    found = {}
    for path in sorted(partition.glob(f"*{LOG}")):
        for raw in split(path.read_bytes()):
            if len(raw) < HEADER.size or sealed(raw) != raw:  # cut off, or zeros
                break
            found[int.from_bytes(raw[:8], "big")] = Held(raw, decode(raw))
    return found
