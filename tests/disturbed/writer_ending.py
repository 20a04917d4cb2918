"""What may become of a log directory in which another writer was at work meanwhile.

1. The command ends with a message, if it does not end well; no file is left open.
2. Nothing outside is touched. Of a directory that was moved away, and of one whose lock was taken,
   no more is changed than by the one operation that was under way. What recovery cuts off, as a
   broker does, is cut off under every name that he has given to it.
3. Each segment is one of the old log, one of the new log, or what he wrote; else, for every key,
   the latest committed record is the one before, or the one that he left, or at the offset of the
   one before what he wrote: a staged file that he changed goes live like any other.
4. Logs that he did not touch hold the old log or the new one, as after a crash.
5. Once directory and lock are back, the next command ends as one that nobody disturbed.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cleaner_jobs.staging import STAGED_MARKER
from compactor.recovery.log_dir_recovery import recover_log_dir
from storage.file_names import LOG
from tests.crash import checks, reader
from tests.crash.reader import Value
from tests.crash.states import LOCK_FILE, TEMPORARY
from tests.disturbed.second_writer import (
    ANOTHERS,
    OF_A_DIRECTORY,
    OF_A_FILE,
    OF_THE_LOCK,
    Attack,
    Writer,
)
from tests.disturbed.stage import Files, Outcome, Stage, files_in, outcome_of, unforeseen
from tests.support.local_command import Ended
from tests.support.reference_batch import ReferenceBatch, decode, split

ENDINGS = {0: "too late to matter", 1: "given up", 2: "given up", 3: "refused", 4: "log given up"}


def tried(stage: Stage, attack: Attack) -> Outcome:
    """Let him strike, and look at what there is then."""
    stage.reset()
    writer = Writer(stage.place, attack)
    ended = stage.scene.play(stage.place, writer.before)
    assert writer.target is not None, attack
    problems, operation = _problems(stage, writer, attack, ended), stage.operations[attack.at]
    return outcome_of(attack, attack.kind, operation, ENDINGS.get(ended.code), problems)


def _problems(stage: Stage, writer: Writer, attack: Attack, ended: Ended) -> Iterator[str]:
    yield from stage.left_open()
    yield from unforeseen(ended, ENDINGS)
    outside = files_in(writer.outside)
    touched = _different(outside, writer.left_outside) - _cut_off(
        stage, outside, writer.left_outside
    )
    moved = {name for name in touched if _is_moved(name)}
    others = touched - moved
    if others or len(moved) > 2:  # a rename has two names
        yield f"touched outside: {sorted(others | moved)}"
    is_held = attack.at > _first_held(stage)
    if attack.kind in OF_A_DIRECTORY and is_held:
        yield from _in_its_place(stage, writer)
    is_ending = stage.operations[attack.at].kind == "unlink"  # our lock file goes, under way
    if attack.kind in OF_THE_LOCK and is_held and not is_ending:
        yield from _after_the_lock(stage, writer)
    if attack.kind in OF_A_FILE:
        yield from _of_the_files(stage, writer)
    elif is_held or attack.kind not in OF_A_DIRECTORY or not _is_done(stage):
        # else it was all done in what stood there, which was meant
        writer.restore()
        yield from _as_if_undisturbed(stage)


def _is_done(stage: Stage) -> bool:
    with suppress(Exception):  # a log that is torn still cannot be read
        return stage.state() == stage.end
    return False


def _first_held(stage: Stage) -> int:
    """The operation by which the directories are held: what stands there then is meant."""
    operations = [(operation.kind, operation.path) for operation in stage.operations]
    locked = [kind for kind, _ in operations].index("lockf")
    return operations.index(("scandir", str(stage.place.logs)), locked)


def _in_its_place(stage: Stage, writer: Writer) -> Iterator[str]:
    assert writer.target is not None
    own = f"{writer.target.name}/"
    now = files_in(stage.place.logs)
    touched = _different(now, writer.left) - _cut_off(stage, now, writer.left)
    if any(name.startswith(own) for name in touched):
        yield f"touched what took its place: {sorted(touched)}"


def _is_moved(name: str) -> bool:
    return name.startswith("moved/")


def _different(one: Files, other: Files) -> set[str]:
    """But for what is just being written: that goes on in the file that is open, wherever its
    names are."""
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return {name for name in names if not (STAGED_MARKER in name or name.endswith(TEMPORARY))}


def _cut_off(stage: Stage, now: Files, left: Files) -> set[str]:
    """What recovery has cut off: under all names of the file, see above."""
    if stage.scene.command != "recover":
        return set()
    return {name for name in now.keys() & left.keys() if left[name].startswith(now[name])}


def _after_the_lock(stage: Stage, writer: Writer) -> Iterator[str]:
    followed = _different(files_in(stage.place.logs), writer.left)
    if len(followed) > 2:
        yield f"changed without the lock: {sorted(followed)}"
    path = stage.place.logs / LOCK_FILE
    if path.exists() and path.read_bytes() != ANOTHERS:
        yield "there is another lock file"
    if not path.exists() and ANOTHERS in writer.wrote:
        yield "his lock file is gone"


def _as_if_undisturbed(stage: Stage) -> Iterator[str]:
    again = stage.scene.play(stage.place)
    if again.code:
        yield f"the next command ends with {again.code}: {again.out} {again.error}"
    elif stage.state() != stage.end:
        yield "the next command leaves something else"


def _of_the_files(stage: Stage, writer: Writer) -> Iterator[str]:
    assert writer.target is not None
    partition = writer.target.parent.name
    copy, as_he_left = (stage.place.root.with_name(name) for name in ("copy", "as-he-left"))
    for path in (copy, as_he_left):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(stage.place.logs, copy, symlinks=True)
    for name, data in writer.left.items():
        (as_he_left / name).parent.mkdir(parents=True, exist_ok=True)
        (as_he_left / name).write_bytes(data)
    for path in (copy, as_he_left):
        recover_log_dir(str(path))
    yield from _of_his_log(stage, writer, copy / partition, as_he_left / partition)
    if stage.scene.command != "recover":
        shutil.rmtree(copy / partition)
        left = {name: log for name, log in stage.ends.before.items() if name != partition}
        if left:
            ends = stage.ends._replace(before=left)
            yield from checks.problems_of(copy, ends, (LOCK_FILE,))


def _of_his_log(stage: Stage, writer: Writer, now: Path, as_he_left: Path) -> Iterator[str]:
    known = {
        segment.log
        for logs in (stage.ends.before, stage.ends.after, stage.ends.split)
        for segment in (logs[now.name].segments if now.name in logs else ())
    }
    known.update((*writer.wrote, *stage.files.values()))  # a torn one, too
    for path in sorted(now.glob(f"*{LOG}")):
        if path.is_symlink() or path.read_bytes() in known:
            continue
        before = _latest_of(stage.ends.before[now.name].batches)
        found, his = _latest_of(_batches(now)), _latest_of(_batches(as_he_left))
        written = _latest_of([batch for data in writer.wrote for batch in _batches_in(data)])
        for key in before.keys() | found.keys() | his.keys():
            allowed = [before.get(key), his.get(key)]
            if key in before and key in written and written[key].offset == before[key].offset:
                allowed.append(written[key])
            is_gone = found.get(key) is None and any(a is None or a.value is None for a in allowed)
            if found.get(key) not in allowed and not is_gone:
                yield f"{path.name}: {key!r} is {found.get(key)}, was one of {allowed}"
        return


def _latest_of(batches: list[ReferenceBatch]) -> dict[bytes, Value]:
    _, committed = reader.latest(batches, 0)
    return committed


def _batches(partition: Path) -> list[ReferenceBatch]:
    """As far as they can be read."""
    found = []
    for path in sorted(partition.glob(f"*{LOG}")):
        found += _batches_in(path.read_bytes())
    return found


def _batches_in(data: bytes) -> list[ReferenceBatch]:
    """Likewise; none where one cannot be read."""
    with suppress(Exception):
        return [decode(raw) for raw in split(data)]
    return []
