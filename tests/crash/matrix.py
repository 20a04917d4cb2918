"""Takes a recorded run through its crash states: recover each, look at what is left, go on."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cleaner_jobs.local.local_engine import LocalEngine
from compactor.recovery.log_dir_recovery import LoadRules, LogRecovery, recover_log_dir
from storage.formats import clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.crash import checks, reader, stories
from tests.crash.checks import Ends, Log
from tests.crash.next_round import Digest, digest_of, problems_of_next_rounds
from tests.crash.operations import Record
from tests.crash.recorder import KINDS, Recorder
from tests.crash.slow_loader import load_log_dir
from tests.crash.states import LOCK_FILE, STAGED, TEMPORARY, CrashState, crash_states
from tests.crash.stories import NOW_MS, Story
from tests.oracle import kafka
from tests.support.watched_workers import watched_workers

WORKERS = 2  # of a story whose tasks the local engine's workers do
AT_ONCE = 200  # log directories that lie on disk at a time


class Recorded(NamedTuple):
    """A story as it went when nothing crashed."""

    story: Story
    record: Record
    ends: Ends
    directories: tuple[str, ...]


class Recovery(NamedTuple):
    """Who brings a log directory up after a crash."""

    name: str
    recover: Callable[[Story, Path], Mapping[str, str]]  # every one below a root; errors by name
    may_be_left: tuple[str, ...]  # of names in files that it does not know
    is_model: bool = False  # for the slow loader, which has to leave the same segments


@dataclass
class Result:
    tried: int = 0
    lost: list[str] = field(default_factory=list)


def recorded(story: Story, work: Path) -> Recorded:
    log_dir = work / "logs"
    log_dir.mkdir(parents=True)
    story.build(log_dir)
    if not story.is_undone:
        plan = stories.planned(story, log_dir)
        groups = {
            f"{log.topic}-{log.partition}": [
                [segment.base_offset for segment in group.segments] for group in log.groups
            ]
            for log in plan.logs
        }
        assert groups == story.groups, groups
    before, split = checks.logs_of(log_dir), dict[str, Log]()
    recorder = Recorder(log_dir)
    with ExitStack() as stack:
        tasks = None
        if story.local:
            watched = watched_workers(log_dir, KINDS, recorder.elsewhere, WORKERS)
            tasks = LocalEngine(stack.enter_context(watched))
        stack.enter_context(recorder.recording())
        stories.cut_short(
            story, log_dir, work / "work", lambda: split.update(checks.logs_of(log_dir)), tasks
        )
    assert not recorder.unseen, recorder.unseen
    directories = tuple(path.name for path in log_dir.iterdir() if path.is_dir())
    ends = Ends(before, checks.logs_of(log_dir), split or before)
    assert not checks.changed_values(ends)
    shutil.rmtree(log_dir)
    shutil.rmtree(log_dir.with_name(stories.KEPT), ignore_errors=True)
    return Recorded(story, recorder.record, ends, directories)


def crashes_of_recovery(run: Recorded, state: CrashState, work: Path) -> list[CrashState]:
    """What is left where our recovery of a crash state is itself cut short."""
    log_dir = work / "recovering"
    state.write(log_dir, run.directories)
    recorder = Recorder(log_dir)
    with recorder.recording():
        recover_log_dir(str(log_dir))
    assert not recorder.unseen, recorder.unseen
    shutil.rmtree(log_dir)
    return [
        CrashState(
            left.files,
            state.operations,
            f"{state.kind}; our recovery cut short after {left.operations} operations, {left.kind}",
        )
        for left in crash_states(recorder.record)
    ]


def recover_by_kafka(story: Story, root: Path) -> Mapping[str, str]:
    """What a broker does that starts, for each log directory."""
    configs = root.with_name("topic-configs.json")
    configs.write_text(json.dumps(story.topic_configs))
    lines = kafka.run("recover-all", root, configs, "--now", str(NOW_MS)).splitlines()
    return {
        line["log_dir"]: f"{partition}: {result['error']}"
        for line in map(json.loads, lines)
        for partition, result in line["results"].items()
        if "error" in result
    }


def recover_unclean_by_kafka(story: Story, root: Path) -> Mapping[str, str]:
    """The same, after a start that failed and took the marker of the clean shutdown away."""
    for log_dir in root.iterdir():
        (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    return recover_by_kafka(story, root)


def recover_by_ours(_: Story, root: Path) -> Mapping[str, str]:
    return _recover_twice(root, None)


def recover_unclean_by_ours(story: Story, root: Path) -> Mapping[str, str]:
    """As `--recover-first`, which indexes and snapshots are made anew by as well."""
    for log_dir in root.iterdir():
        (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    return _recover_twice(root, LoadRules(stories.config_of(story), NOW_MS))


def _recover_twice(root: Path, rules: LoadRules | None) -> Mapping[str, str]:
    """The second time nothing is left to do, but that an epoch without records goes.

    After an unclean shutdown Kafka, too, lets one go that begins where the log ends, each time.
    """
    errors = {}
    for log_dir in sorted(root.iterdir()):
        done = [recover_log_dir(str(log_dir), rules) for _ in range(2)]
        problems = [log.problem for each in done for log in each.logs if log.problem]
        if problems:
            errors[log_dir.name] = str(problems)
        elif done[1].removed or any(map(_is_more_than_epochs, done[1].logs)):
            errors[log_dir.name] = f"the second time: {done[1]}"
    return errors


def _is_more_than_epochs(log: LogRecovery) -> bool:
    other = log.finished or log.undone or log.removed or log.truncated
    return bool(other) or log.rebuilt != (LEADER_EPOCH_CHECKPOINT,)


OURS = Recovery("ours", recover_by_ours, (LOCK_FILE,))
OURS_UNCLEAN = Recovery("ours, unclean", recover_unclean_by_ours, (LOCK_FILE,))
KAFKA = Recovery("Kafka", recover_by_kafka, (STAGED, TEMPORARY), is_model=True)
KAFKA_UNCLEAN = Recovery("Kafka, unclean", recover_unclean_by_kafka, (STAGED, TEMPORARY))


class Matrix:
    """Tries crash states of one story."""

    def __init__(self, run: Recorded, work: Path, next_rounds: bool = True) -> None:
        """next_rounds: clean what was recovered once more, by Kafka and by ours."""
        self._run, self._work, self._goes_on = run, work, next_rounds
        self._next_rounds: dict[Digest, list[str]] = {}
        self.result = Result()

    def try_states(self, states: Sequence[CrashState], recovery: Recovery) -> None:
        for start in range(0, len(states), AT_ONCE):
            self._try(states[start : start + AT_ONCE], recovery)

    def _try(self, states: Sequence[CrashState], recovery: Recovery) -> None:
        root = self._work / "crashed"
        for number, state in enumerate(states):
            state.write(root / f"{number:05}", self._run.directories)
        errors = recovery.recover(self._run.story, root)
        found = {}
        for number, state in enumerate(states):
            log_dir = root / f"{number:05}"
            error = errors.get(log_dir.name)
            problems = [error] if error else list(self._problems(log_dir, recovery))
            if recovery.is_model and not problems:
                problems += self._other_than_the_slow_loader(log_dir, state)
            found[log_dir] = state, problems
        sound = [log_dir for log_dir, (_, problems) in found.items() if not problems]
        if self._goes_on:
            for log_dir, more in self._problems_of_next_rounds(sound).items():
                found[log_dir][1].extend(more)
        for state, problems in found.values():
            self.result.tried += 1
            if problems:
                self.result.lost.append(self._told(state, recovery, problems))
        shutil.rmtree(root)

    def _problems(self, log_dir: Path, recovery: Recovery) -> Iterator[str]:
        try:
            yield from checks.problems_of(log_dir, self._run.ends, recovery.may_be_left)
        except Exception as error:  # whatever a reader stumbles over is one
            yield f"cannot be read: {error!r}"

    def _other_than_the_slow_loader(self, log_dir: Path, state: CrashState) -> Iterator[str]:
        model = self._work / "slow-loader"
        state.write(model, self._run.directories)
        load_log_dir(model)
        for name in self._run.directories:
            if reader.segments_of(model / name) != reader.segments_of(log_dir / name):
                yield f"{name}: the slow loader leaves other segments"
        shutil.rmtree(model)

    def _problems_of_next_rounds(self, log_dirs: Sequence[Path]) -> dict[Path, list[str]]:
        digests = {log_dir: digest_of(log_dir) for log_dir in log_dirs}
        new = {
            digest: log_dir
            for log_dir, digest in digests.items()
            if digest not in self._next_rounds
        }
        work = self._work / "next"
        work.mkdir(exist_ok=True)
        if new:
            problems = problems_of_next_rounds(self._run.story, list(new.values()), work)
            self._next_rounds.update((digest, problems[path]) for digest, path in new.items())
        return {log_dir: self._next_rounds[digest] for log_dir, digest in digests.items()}

    def _told(self, state: CrashState, recovery: Recovery, problems: list[str]) -> str:
        done = self._run.record.operations[: state.operations]
        last = done[-1] if done else "nothing"
        return (
            f"{self._run.story.name}, after operation {state.operations} ({last}), {state.kind}; "
            f"recovered by {recovery.name}: {'; '.join(problems[:3])}"
        )


def sample(states: Sequence[CrashState], count: int) -> list[CrashState]:
    """So many states, spread over the whole run; the same ones for the same run."""
    if count >= len(states):
        return list(states)
    return [states[i * len(states) // count] for i in range(count)]
