"""Every promise that names a command, kept from beginning to end on what a broker left.

The rows of docs/promises.md that name a command are all here: in a story, which runs the commands,
or among those that are held elsewhere, with the reason. A new row fails until it is.
"""

import os
import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from storage.formats import checkpoint
from tests.end_to_end.operator_shell import Shell
from tests.end_to_end.operator_steps import (
    Step,
    carry_out,
    damage,
    lay,
    make,
    remove,
    write_topics,
)
from tests.golden import broker_dirs
from tests.support.file_states import state_of
from tests.support.lock_holding import held_by_another

PAGE = Path(__file__).parents[2] / "docs" / "promises.md"
NAMES = "run|plan|verify|explain|undo|recover|doctor|dump|inspect|configs|report|tables"
COMMAND = re.compile(rf"`(?:compactor )?(?:{NAMES}|log \w+)(?: [^`]*)?`|`--[a-z]")
STOPPED, KILLED = (lay(name, "/data/kafka") for name in (broker_dirs.STOPPED, broker_dirs.KILLED))
SEGMENT = "00000000000000000200.log"


class Story(NamedTuple):
    """How each promise that it keeps begins, and what is done."""

    promises: tuple[str, ...]
    steps: tuple[Step, ...]
    locked: bool = False  # another process has the lock on the log directory


def damage_end_of_metadata(shell: Shell) -> None:
    path = shell.path("/data/kafka/__cluster_metadata-0/00000000000000000000.log")
    data, times = bytearray(path.read_bytes()), path.stat()
    data[-3] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def write_old_topics(shell: Shell) -> None:
    write_topics("home/topics.json", "orders", policy="compact,delete", **{"retention.ms": "-1"})(
        shell
    )


def damage_epochs(shell: Shell) -> None:
    shell.path("/data/kafka/customers-0/leader-epoch-checkpoint").write_text("nothing\n")


CLEAN = "run /data/kafka --include customers"
STORIES: dict[str, Story] = {
    "a broker is at work": Story(
        (
            "`plan` says what a run would be refused for",
            "`plan`, `explain`, `verify`, `dump` and a dry run take no lock",
        ),
        (
            Step("compactor plan /data/kafka", says=("A run would be refused",), before=(STOPPED,)),
            Step("compactor explain /data/kafka customers-0", says=("would be compacted now",)),
            Step("compactor verify /data/kafka", says=("all sound",)),
            Step(f"compactor dump /data/kafka/customers-0/{SEGMENT}", says=("200",)),
            Step(f"compactor {CLEAN} --dry-run", says=("1 would be cleaned",), keeps="/data/kafka"),
            Step(f"compactor {CLEAN}", code=3, says=("Nothing was changed",), keeps="/data/kafka"),
        ),
        locked=True,
    ),
    "a broker was killed": Story(
        (
            "without `.kafka_cleanshutdown` a run is refused",
            "`plan`, `explain` and a dry run settle nothing",
        ),
        (
            Step(f"compactor {CLEAN}", 3, ("--recover-first",), (KILLED,), keeps="/data/kafka"),
            Step("compactor plan /data/kafka", says=("--recover-first",), keeps="/data/kafka"),
            Step("compactor explain /data/kafka customers-0", keeps="/data/kafka"),
            Step("compactor recover /data/kafka"),
            Step("compactor verify /data/kafka", says=("all sound",)),
            Step(f"compactor {CLEAN} --recover-first", says=("1 cleaned", "800 → 100")),
        ),
    ),
    "careless words": Story(
        (
            "`--set cleanup.policy=compact` for every topic",
            "an `--include` (or `include` of a file) that matches no topic",
            "an `--exclude`, a `[[topics]]` pattern",
            "an `--as-of` in seconds",
            "a clock, `--as-of` or the machine's",
        ),
        (
            Step(
                "compactor plan /data/kafka --set cleanup.policy=compact",
                code=2,
                says=("--include",),
                before=(STOPPED,),
            ),
            Step("compactor run /data/kafka --set cleanup.policy=compact", 2, ("--include",)),
            Step("compactor plan /data/kafka --include customer", 2, ("customers",)),
            Step("compactor run /data/kafka --include customer", 2, ("customers",)),
            Step("compactor plan /data/kafka --exclude customer", 0, ("matches no topic here",)),
            Step("compactor run /data/kafka --as-of 1795681421", 2, ("Nothing was changed",)),
            Step("compactor plan /data/kafka --as-of 1795681421", 0, ("Warning", "1970")),
            Step(f"compactor {CLEAN} --as-of 2026-01-01T00:00:00Z", 0, ("clock of the round",)),
            Step(
                f"compactor {CLEAN} --as-of 2026-01-01T00:00:00Z --any-clock",
                says=("1 cleaned", "800 → 100"),
            ),
        ),
    ),
    "an old file of settings": Story(
        ("a `--topic-configs` file that names another `cleanup.policy`",),
        (
            Step(
                "compactor run /data/kafka --include orders --topic-configs topics.json",
                code=4,
                says=("8 set aside", "compact,delete in --topic-configs topics.json"),
                before=(STOPPED, write_old_topics),
            ),
            Step(
                "compactor run /data/kafka --include orders --topic-configs topics.json "
                "--trust-topic-configs orders",
                says=("2 cleaned", "800 → 100"),
            ),
        ),
    ),
    "the end of the metadata log is damaged": Story(
        ("the last batch of the metadata log is damaged",),
        (
            Step(
                f"compactor {CLEAN}",
                code=4,
                says=("1 set aside", "metadata"),
                before=(STOPPED, damage_end_of_metadata),
            ),
            Step(
                f"compactor {CLEAN} --topic-configs topics.json",
                says=("1 cleaned", "800 → 100"),
                before=(write_topics("home/topics.json", "customers"),),
            ),
        ),
    ),
    "not all log directories": Story(
        ("not all log directories of a broker",),
        (
            Step(
                f"compactor {CLEAN}",
                code=3,
                says=("--all-log-dirs-given",),
                before=(lay("two/kafka", "/data/kafka"), lay("two/kafka2", "/data2/kafka")),
                keeps="/data/kafka",
            ),
            Step(f"compactor {CLEAN} /data2/kafka", says=("1 cleaned",)),
        ),
    ),
    "no high watermarks": Story(
        ("a log directory without `replication-offset-checkpoint`",),
        (
            Step(
                "compactor plan /data/kafka",
                says=("--assume-fully-replicated",),
                before=(STOPPED, remove("/data/kafka/replication-offset-checkpoint")),
            ),
            Step(f"compactor {CLEAN}", 3, ("--assume-fully-replicated",), keeps="/data/kafka"),
            Step(f"compactor {CLEAN} --assume-fully-replicated", says=("1 cleaned", "800 → 100")),
        ),
    ),
    "damage": Story(
        (
            "ends, takes a log directory offline, or makes an empty log",
            "a log directory from a backup that skips `*.log`",
            "`verify` reports a missing segment",
            "`--on-corrupt fail` changes nothing",
            "a log that was set aside is remembered",
        ),
        (
            Step(
                "compactor verify /data/kafka",
                code=4,
                says=("customers-0", f"orders-7/{SEGMENT}, byte 0:", "orders-3"),
                before=(
                    STOPPED,
                    damage,
                    remove(f"/data/kafka/orders-3/{SEGMENT}"),
                    remove("/data/kafka/customers-0/*.log"),
                ),
            ),
            Step("compactor doctor /data/kafka", 4, ("customers-0",)),
            Step("compactor recover /data/kafka", 4, ("customers-0",)),
            Step("compactor plan /data/kafka", 4, ("customers-0",), keeps="/data/kafka"),
            Step("compactor explain /data/kafka customers-0", 4, ("its .log files are gone",)),
            Step("compactor run /data/kafka --on-corrupt fail", 1),
            Step("compactor run /data/kafka", 4, ("1 cleaned", "576 → 8")),
            Step("compactor run /data/kafka", 4, (f"orders-7/{SEGMENT}, byte 0:",)),
            Step("compactor run /data/kafka --retry", 4, (f"orders-7/{SEGMENT}, byte 0:",)),
            Step(
                "compactor verify /data/kafka customers-0",
                code=4,
                says=("leader-epoch-checkpoint",),
                before=(STOPPED, damage_epochs),
            ),
        ),
    ),
}
ELSEWHERE = {
    "stops at a directory whose name is not that of a partition": "test_log_dir_names.py, on Spark",
    "continues a move between two of its log directories": "tests/broker/test_moved_partition.py",
    "finds a replica in another log directory": "how-to/disk-full.md, and a broker's start",
    "`doctor` and `explain` beside `plan` and `run`": "each source in each state, without Spark",
    "a topic of events without keys": "tests/broker/test_real_broker.py has such a topic",
    "a run that takes long, recovers first": "a shell cannot hold the clock",
    "whatever another writer does": "make test-writer: between two file operations",
    "`plan` shows the need": "how-to/disk-full.md",
    "what there is no room for at first": "test_turns.py, on Spark",
    "what `run --output` leaves": "test_a_copy_has_the_bytes_of_a_run_in_place, here",
    "whatever happened to the log since": "test_a_run_is_undone, here, and make test-undo",
    "originals are dropped on request": "test_a_run_is_undone, here",
    "in whichever order that happens": "make test-histories",
    "what `plan` and `doctor` say of a run": "make test-obstacles: 500 random ones",
    "a command that a message, a report or the page prints": "tests/printed_commands runs them",
    "memory and processors are what the control groups allow": "they cannot be set for a test",
    "an error of a cache": "test_first_use.py, on Spark",
    "`--exact-bytes`, where a codec is of another build": "the build is that of the environment",
    "a user without a name": "test_nameless_user.py, here",
    "no command changes a copy that was never finished": "each command, without Spark",
    "a log that `recover` sets aside": "each command, without Spark",
    "files in a partition that are not Kafka's are named": "each command, without Spark",
    "a log whose leader epochs begin before its first segment": "each command, without Spark",
    "a log that is missing from a copy by its manifest": "each command, without Spark",
    "a `--topic-configs` file that compacts a topic without": "without Spark",
    "after a clean shutdown, a log that ends before": "each command, without Spark",
    "`undo --dry-run` says of each log": "make test-undo: before each undoing",
    "no variable and no file of another Spark": "another Spark cannot be set for a test",
}


def held_lock(log_dir: Path) -> AbstractContextManager[None]:
    """As of a broker: in a process of its own, or who reads `.lock` here would give it away."""
    return held_by_another(
        "compactor.log_dirs.locked_log_dirs", f"lock_log_dirs([{str(log_dir)!r}])"
    )


def rows_that_name_a_command() -> list[str]:
    """Without the cell of the tests, which name commands in other ways."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line.removeprefix("| ") for line in lines if line.startswith("| ")]
    return [row for row in rows if COMMAND.search(row.rpartition(" | ")[0])]


def test_every_promise_that_names_a_command_is_here() -> None:
    known = [promise for story in STORIES.values() for promise in story.promises] + [*ELSEWHERE]
    rows = rows_that_name_a_command()
    assert [row for row in rows if sum(row.startswith(begin) for begin in known) != 1] == []
    assert [begin for begin in known if not any(row.startswith(begin) for row in rows)] == []


@pytest.mark.spark
@pytest.mark.parametrize("name", STORIES)
def test_what_is_promised_is_kept(name: str, tmp_path: Path) -> None:
    story, shell = STORIES[name], Shell(tmp_path)
    first, *rest = story.steps
    for prepare in first.before:
        prepare(shell)
    with held_lock(shell.path("/data/kafka")) if story.locked else nullcontext():
        carry_out(shell, (first._replace(before=()), *rest))


@pytest.mark.spark
def test_a_copy_has_the_bytes_of_a_run_in_place(tmp_path: Path) -> None:
    """At one clock, by which horizons go."""
    shell, at = Shell(tmp_path), "--as-of 2026-11-27T00:00:00Z --any-clock"
    steps = (
        Step(
            f"compactor run /data/kafka --output /restore/kafka {at}",
            before=(STOPPED, make("/restore")),
            keeps="/data/kafka",
        ),
        Step("compactor verify /restore/kafka --manifest --against /data/kafka"),
        Step(f"compactor run /data/kafka --keep-originals /data/originals {at}"),
    )
    carry_out(shell, steps)
    copy, own = (_bytes_of(shell.path(name)) for name in ("/restore/kafka", "/data/kafka"))
    manifest = {name for name in copy if name.startswith("compactor-copy")}
    assert {name: data for name, data in copy.items() if name not in manifest} == own


@pytest.mark.spark
def test_a_run_is_undone(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    STOPPED(shell)
    before = state_of(shell.path("/data/kafka"))
    clean = f"compactor {CLEAN} --keep-originals /data/originals"
    carry_out(shell, (Step(clean, says=("1 cleaned",)),))
    assert _bytes_of(shell.path("/data/kafka")) != {name: s.data for name, s in before.items()}
    carry_out(shell, (Step("compactor undo /data/originals/*"),))
    after = state_of(shell.path("/data/kafka"))
    begun = after.pop(checkpoint.CLEANER_OFFSET)  # which a broker takes for none
    assert (begun.data, after) == (b"0\n0\n", before)
    carry_out(
        shell,
        (
            Step(f"compactor {CLEAN} --keep-originals /data/others", says=("1 cleaned",)),
            Step("compactor undo --discard /data/others/*"),
            Step("compactor verify /data/kafka", says=("all sound",)),
        ),
    )


def _bytes_of(directory: Path) -> dict[str, bytes]:
    return {name: state.data for name, state in state_of(directory).items()}
