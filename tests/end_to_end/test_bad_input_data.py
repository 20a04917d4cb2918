"""Damaged logs by the hundred in one round: each is set aside with file and byte, and left alone.

The sound ones among them are cleaned, whichever comes before or after them in a task.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from compactor.log_dirs.set_aside_memory import SET_ASIDE
from storage.formats import checkpoint
from tests.end_to_end import bad_input_logs
from tests.end_to_end.bad_input_damage import Damage, all_damages
from tests.end_to_end.bad_input_logs import LOG, SEGMENTS, put
from tests.end_to_end.bad_input_program import Ended, Program
from tests.support.file_states import State, state_of

pytestmark = pytest.mark.spark

SOUND = [f"sound-{n}" for n in range(5)] + ["cut-10a", "flip-100a", "zzz"]  # among the others

CHECKPOINTS = {  # a bad file each, and what is said of it (F-13.2)
    "version": (checkpoint.CLEANER_OFFSET, b"1\n0\n", "byte 0: checkpoint version 1"),
    "count": (
        checkpoint.CLEANER_OFFSET,
        b"0\n2\nt 0 5\n",
        "byte 2: the count says 2, and lines with entries: 1",
    ),
    "fields": (checkpoint.CLEANER_OFFSET, b"0\n1\nt 0\n", "byte 4: line 't 0': 3 fields expected"),
    "offset": (checkpoint.CLEANER_OFFSET, b"0\n1\nt 0 x\n", "byte 4: 'x' is not a 64-bit integer"),
    "huge": (checkpoint.CLEANER_OFFSET, b"0\n1\nt 0 9223372036854775808\n", "byte 4: '9223"),
    "letters": (checkpoint.CLEANER_OFFSET, b"0\n1\nt\xff 0 5\n", "byte 5: not UTF-8"),
    "noise": (checkpoint.CLEANER_OFFSET, bytes(range(128, 228)), "byte 0: not UTF-8"),
    "torn": (checkpoint.CLEANER_OFFSET, b"0\n1\nt 0", "byte 4: line 't 0': 3 fields expected"),
    "start": (
        checkpoint.LOG_START,
        b"0\n1\n",
        "byte 2: the count says 1, and lines with entries: 0",
    ),
    "high": (checkpoint.REPLICATION, b"no\n", "byte 0: 'no' is not a 32-bit integer"),
}


class Round(NamedTuple):
    """One round over everything."""

    root: Path  # of all log directories
    damages: dict[str, Damage]
    before: State
    after: State
    ended: Ended

    def of(self, state: State, topic: str) -> State:
        folder = f"/{topic}-0/"
        return {name: held for name, held in state.items() if folder in name}


def build(root: Path) -> list[Damage]:
    template = bad_input_logs.write_template(root / "template")
    damages = all_damages(template)
    topics = [damage.topic for damage in damages]
    assert len(set(topics)) == len(topics) > 900
    bad_input_logs.make_log_dir(root / "logs", template, [*topics, *SOUND])
    for damage in damages:
        damage.harm(root / "logs" / f"{damage.topic}-0")
    for name, (file, data, _) in CHECKPOINTS.items():
        bad_input_logs.make_log_dir(root / f"checkpoint-{name}", template, [f"under-{name}"])
        put(root / f"checkpoint-{name}" / file, data)
    return damages


@pytest.fixture(scope="module")
def all_in_one(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Round:
    root = tmp_path_factory.mktemp("bad")
    damages = build(root)
    before = state_of(root)
    log_dirs = [path for path in sorted(root.iterdir()) if path.name != "template"]
    ended = Program(spark, tmp_path_factory.mktemp("work")).run(*log_dirs)
    return Round(root, {d.topic: d for d in damages}, before, state_of(root), ended)


def check(found: Round, damage: Damage) -> str | None:
    """What is not as it should be of one damaged log."""
    log = found.ended.logs[damage.topic]
    if damage.cleaned:
        return None if log["status"] == "cleaned" else f"{log['status']}: {log['reason']}"
    before, after = (found.of(state, damage.topic) for state in (found.before, found.after))
    if before != after:
        return f"changed: {sorted(k for k in before | after if before.get(k) != after.get(k))}"
    if log["status"] != "set-aside":
        return f"{log['status']}: {log['reason']}"
    path = re.escape(f"{found.root}/logs/{damage.topic}-0")
    in_file = re.match(r"\(?0{20}|\(?0+\d+\.", damage.told) is not None and ", byte" in damage.told
    start = f"{path}/" if in_file else f"({path})?"
    if not re.match(start + damage.told, log["reason"]) or "\n" in log["reason"]:
        return f"reason: {log['reason']}"
    return None


@pytest.mark.parametrize(
    "kind",
    [
        "cut", "flip", "codec", "payload", "magic", "length", "offset", "last", "count", "record",
        "key", "tail", "legacy", "segment", "segments", "above", "control", "transaction",
        "index", "torn.swap", "stray",
    ],
)  # fmt: skip
def test_a_damaged_log_is_set_aside_with_file_and_byte_and_left_as_it_was(
    all_in_one: Round, kind: str
) -> None:
    of_kind = [d for d in all_in_one.damages.values() if d.topic.split("-")[0] == kind]
    assert of_kind
    wrong = {damage.topic: check(all_in_one, damage) for damage in of_kind}
    assert {topic: why for topic, why in wrong.items() if why is not None} == {}


def test_every_damage_is_of_a_kind_that_is_looked_at(all_in_one: Round) -> None:
    mark = test_a_damaged_log_is_set_aside_with_file_and_byte_and_left_as_it_was.pytestmark[0]  # type: ignore[attr-defined]
    kinds = set(mark.args[1])
    assert {topic.split("-")[0] for topic in all_in_one.damages} == kinds


def test_sound_logs_of_the_same_round_are_cleaned(all_in_one: Round) -> None:
    path = all_in_one.root / "logs" / checkpoint.CLEANER_OFFSET
    entries = checkpoint.read(str(path))
    for topic in SOUND:
        log = all_in_one.ended.logs[topic]
        assert (log["status"], log["reason"]) == ("cleaned", None), topic
        assert log["records"]["kept"] == bad_input_logs.KEPT
        assert entries.pop((topic, 0)) == SEGMENTS[-1]
    undetectable = {d.topic for d in all_in_one.damages.values() if d.cleaned}
    assert {topic for topic, _ in entries} == undetectable


def test_the_round_ends_with_code_4(all_in_one: Round) -> None:
    assert (all_in_one.ended.code, all_in_one.ended.document["status"]) == (4, "partial")


def test_files_of_the_log_directory_itself_are_as_they_were(all_in_one: Round) -> None:
    before, after = (
        {name: held for name, held in state.items() if name.count("/") == 1}
        for state in (all_in_one.before, all_in_one.after)
    )
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert changed == {f"logs/{checkpoint.CLEANER_OFFSET}", f"logs/{SET_ASIDE}"}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_under_a_checkpoint_that_does_not_parse_every_log_is_set_aside(
    all_in_one: Round, name: str
) -> None:
    """C-4.3."""
    topic = f"under-{name}"
    log = all_in_one.ended.logs[topic]
    file, _, told = CHECKPOINTS[name]
    assert log["status"] == "set-aside"
    assert log["reason"].startswith(f"{all_in_one.root}/checkpoint-{name}/{file}, {told}")
    assert all_in_one.of(all_in_one.before, topic) == all_in_one.of(all_in_one.after, topic)


def test_a_dry_run_says_the_same_and_changes_nothing(
    spark: SparkSession, tmp_path: Path, all_in_one: Round
) -> None:
    build(tmp_path / "again")
    before = state_of(tmp_path)
    ended = Program(spark, tmp_path).run(tmp_path / "again" / "logs", "--dry-run")
    assert state_of(tmp_path) == before
    real = all_in_one.ended
    for topic in (*SOUND, *all_in_one.damages):
        foretold, log = ended.logs[topic], real.logs[topic]
        assert foretold["status"] == log["status"].replace("cleaned", "would-clean"), topic
        if topic == "torn.swap":  # which only a real run looks into
            assert foretold["reason"].startswith(f"{LOG[0]}.swap: left by a cleaning")
        elif log["reason"] is not None:
            old, new = str(all_in_one.root), str(tmp_path / "again")
            assert foretold["reason"] == log["reason"].replace(old, new)
