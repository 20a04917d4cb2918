"""A fleet: many logs in one log directory, as built and as Kafka's cleaner left each of them.

`oracle fleet` makes it: `before/` and `after/`, `fleet.json` with the clock and Kafka's outcome of
every log, `topic-configs.json`. It is checked by one round over a copy of `before/`.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.oracle import compare, kafka
from tests.oracle.random_script import Operation

Clean = Callable[[Path, Path, int], None]  # log directory, topic configurations, clock in ms
AFTER_EVERY_HORIZON_MS = 2 * 86_400_000  # and before retention by time has its turn


SET_ASIDE = "compactor-set-aside.json"
_MISSING = "missing behind this segment: "
CLEANER_STOPS = "Empty batches are only supported for magic v2"


class Kafkas(StrEnum):
    """What became of a log in Kafka's hands."""

    CLEANED = "cleaned"
    LEFT = "left as it was"
    FAILED = "failed"  # it would be marked uncleanable; the outcome is nobody's model


@dataclass(frozen=True, slots=True)
class CheckedLog:
    partition: str  # TOPIC-PARTITION
    kafkas: Kafkas
    problems: tuple[str, ...]  # none: ours is as Kafka's
    untouched: bool  # ours left every file as it was
    lacks_segment: bool = False  # ours set it aside, since a segment seems to be missing


@dataclass(frozen=True, slots=True)
class Fleet:
    root: Path

    @property
    def before(self) -> Path:
        return self.root / "before"

    @property
    def after(self) -> Path:
        return self.root / "after"

    @property
    def topic_configs(self) -> Path:
        return self.root / "topic-configs.json"

    @property
    def now_ms(self) -> int:
        return int(self._outcome()["now_ms"])

    def _outcome(self) -> Any:
        return json.loads((self.root / "fleet.json").read_text())

    def kafkas(self) -> dict[str, Kafkas]:
        """Kafka's outcome by TOPIC-PARTITION."""
        return outcomes_of(self._outcome()["results"])

    def check(self, clean: Clean, actual: Path) -> tuple[list[str], list[CheckedLog]]:
        """Clean a copy of before/ in one round: problems of the directory, then of each log."""
        shutil.copytree(self.before, actual)
        clean(actual, self.topic_configs, self.now_ms)
        lacking = _lacking_segments(actual)
        whole = list(compare.log_dir_differences(self.before, self.after, actual))
        entries = [compare.checkpoint_entries(d) for d in (self.before, self.after, actual)]
        return whole, [
            self._checked(name, kafkas, actual, [of_all.get(name) for of_all in entries])
            if name not in lacking
            else self._left_alone(name, kafkas, actual)
            for name, kafkas in sorted(self.kafkas().items())
        ]

    def next_round(self, actual: Path, number: int, slots: int | None) -> "Fleet":
        """What Kafka makes of its own result at a later clock, all of it dirty again.

        actual: ours of the round before. The checkpoints of both are taken away.
        """
        root = self.root.with_name(f"{self.root.name}-round-{number}")
        following = Fleet(root)
        for log_dir in (self.after, actual):
            (log_dir / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        root.mkdir()
        for unfinished in self.after.glob("*/*.cleaned"):  # Kafka failed; a broker's start settles
            unfinished.unlink()
        shutil.copytree(self.after, following.before)
        shutil.copytree(self.after, following.after)
        shutil.copy(self.topic_configs, following.topic_configs)
        now_ms = self.now_ms + AFTER_EVERY_HORIZON_MS
        limit = ["--slots", str(slots)] if slots else []
        found = kafka.run(
            "clean-all", following.after, self.topic_configs, "--now", str(now_ms), *limit
        )
        outcome = {"now_ms": now_ms, "results": json.loads(found)}
        (root / "fleet.json").write_text(json.dumps(outcome))
        return following

    def _left_alone(self, name: str, kafkas: Kafkas, actual: Path) -> CheckedLog:
        """A script may let a replica's segment begin behind a gap, and leave no sign that it did:
        ours sets such a log aside, which docs/differences.md says, and Kafka cleans it."""
        problems = list(compare.differences(self.before / name, self.before / name, actual / name))
        was, have = (compare.checkpoint_entries(d).get(name) for d in (self.before, actual))
        if have != was:
            problems.append(f"cleaner-offset-checkpoint: {was} expected, {have} found")
        return CheckedLog(name, kafkas, tuple(problems), not problems, lacks_segment=True)

    def _checked(
        self, name: str, kafkas: Kafkas, actual: Path, entries: list[int | None]
    ) -> CheckedLog:
        """entries: in the cleaner's checkpoints: before, after Kafka's round, after ours."""
        before, after, ours = (d / name for d in (self.before, self.after, actual))
        if not ours.is_dir():
            return CheckedLog(name, kafkas, ("the directory is gone",), untouched=False)
        untouched = not any(compare.differences(before, before, ours))
        was, want, have = entries
        if kafkas is Kafkas.FAILED:  # sound all the same: ours cleans it, without a model
            if untouched and have == was:
                return CheckedLog(name, kafkas, ("not cleaned",), untouched)
            start = compare.checkpoint_entries(actual, compare.LOG_START_CHECKPOINT).get(name, 0)
            kept = compare.latest_values(ours, start)
            lost = compare.latest_values(before, start) != kept
            return CheckedLog(name, kafkas, ("latest values were lost",) if lost else (), untouched)
        problems = list(compare.differences(before, after, ours))
        if want != have:
            problems.append(f"cleaner-offset-checkpoint: {want} expected, {have} found")
        return CheckedLog(name, kafkas, tuple(problems), untouched)


def _lacking_segments(actual: Path) -> set[str]:
    """The logs that ours set aside, if each of them is for a missing segment: the note of them is
    taken away then."""
    note = actual / SET_ASIDE
    if not note.exists():
        return set()
    logs = json.loads(note.read_text())["logs"]
    lacking = [log for log in logs if _MISSING in log["reason"]]
    if len(lacking) == len(logs):
        note.unlink()
    return {f"{log['topic']}-{log['partition']}" for log in lacking}


def outcomes_of(results: dict[str, dict[str, Any]]) -> dict[str, Kafkas]:
    """The meaning of `fleet.json`'s results.

    A script that Kafka refuses to build is a mistake, unless it was an earlier cleaning in the
    log's life on which its cleaner stops (C-11.14): of that log there is nothing to compare.
    """
    outcomes = {}
    for name, result in results.items():
        if "build_error" in result:
            assert CLEANER_STOPS in result["build_error"], f"{name}: {result['build_error']}"
        elif "clean_error" in result:
            outcomes[name] = Kafkas.FAILED
        else:
            outcomes[name] = Kafkas.CLEANED if result["cleaned"] else Kafkas.LEFT
    return outcomes


def build(
    scripts: Iterable[tuple[str, list[Operation]]], root: Path, slots: int | None = None
) -> Fleet:
    """Let Kafka write and clean the logs of these scripts, each named for its file.

    slots: keys that its cleaner's map takes, if not more than any of them has.
    """
    folder = root / "scripts"
    folder.mkdir(parents=True)
    for name, script in scripts:
        lines = "".join(json.dumps(line) + "\n" for line in script)
        (folder / f"{name}.jsonl").write_text(lines)
    kafka.run("fleet", folder, root, *(["--slots", str(slots)] if slots else []))
    return Fleet(root)
