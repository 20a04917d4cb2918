"""`plan --save`, then `run --plan`: carried out as it was reviewed, or refused."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage.formats import checkpoint
from storage.formats.record_batch import decode_header
from tests.support.file_states import state_of
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.made_log import batches_of, keyed, log_of, make_partition, write_segment

SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two logs to clean, and a plan of it that was saved."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abab")], 8: [keyed(8, "a")]}
    for name in ("orders-0", "users-0"):
        make_partition(tmp_path / "logs", segments, name)
    checkpoint.write(_file(tmp_path, checkpoint.REPLICATION), {("orders", 0): 9, ("users", 0): 9})
    checkpoint.write(_file(tmp_path, checkpoint.CLEANER_OFFSET), {("orders", 0): 4})
    configure(tmp_path, orders={}, users={})
    assert save(tmp_path).code == 0
    return tmp_path


def _file(root: Path, name: str) -> str:
    return str(root / "logs" / name)


def configure(root: Path, **topics: dict[str, str]) -> None:
    text = json.dumps({topic: SETTINGS | own for topic, own in topics.items()})
    (root / "topics.json").write_text(text)


def save(root: Path, *words: str) -> Ended:
    given = "--topic-configs", root / "topics.json", "--save", root / "plan"
    return run_command("plan", root / "logs", *given, *words)


def carry_out(root: Path, *words: str) -> Ended:
    return run_command("run", "--plan", root / "plan", "--format", "json", *words)


def counts(ended: Ended) -> dict[str, Any]:
    """What became of each log that was, or would be, cleaned."""
    names = ("first_dirty_offset", "end_offset", "bytes_before", "bytes_after", "records")
    done = [log for log in ended.summary["logs"] if log["status"] in ("cleaned", "would-clean")]
    return {log["topic"]: [log[name] for name in names] for log in done}


def test_it_is_carried_out_as_it_was_reviewed_and_a_dry_run_shows_the_same(root: Path) -> None:
    as_of_ms = json.loads((root / "plan").read_text())["as_of_ms"]
    dry, wet = carry_out(root, "--dry-run"), carry_out(root)
    assert (dry.code, wet.code) == (0, 0)
    assert counts(dry) == counts(wet)
    assert {topic: found[:2] for topic, found in counts(wet).items()} == {
        "orders": [4, 8],
        "users": [0, 8],
    }
    assert dry.summary["as_of_ms"] == wet.summary["as_of_ms"] == as_of_ms
    assert len(list((root / "logs").glob("orders-0/*.log"))) == 2  # its groups, the active one


def test_what_was_appended_waits(root: Path) -> None:
    """The active segment was rolled twice: without the plan, all up to 13 would be cleaned."""
    for name in ("orders-0", "users-0"):
        partition = root / "logs" / name
        write_segment(partition, 9, [keyed(9, "abab")])
        write_segment(partition, 13, [keyed(13, "a")])
    ends = {("orders", 0): 14, ("users", 0): 14}
    checkpoint.write(_file(root, checkpoint.REPLICATION), ends)
    dry, wet = carry_out(root, "--dry-run"), carry_out(root)
    assert (dry.code, wet.code) == (0, 0)
    assert counts(dry) == counts(wet)
    assert {topic: found[:2] for topic, found in counts(wet).items()} == {
        "orders": [4, 8],
        "users": [0, 8],
    }
    offsets = checkpoint.read(_file(root, checkpoint.CLEANER_OFFSET))
    assert offsets == {("orders", 0): 8, ("users", 0): 8}


def test_a_log_that_nobody_reviewed_is_left(root: Path) -> None:
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "a")]}
    make_partition(root / "logs", segments, "users-1")
    checkpoint.write(
        _file(root, checkpoint.REPLICATION),
        {("orders", 0): 9, ("users", 0): 9, ("users", 1): 5},
    )
    done = carry_out(root)
    assert set(counts(done)) == {"orders", "users"}
    [left] = [log for log in done.summary["logs"] if log["partition"] == 1]
    assert (left["status"], left["reason"]) == (
        "passed-over",
        "it is not among the logs of the plan",
    )


def written_again(root: Path) -> None:
    os.utime(log_of(root / "logs" / "users-0", 4), (1, 1))


def longer(root: Path) -> None:
    path = log_of(root / "logs" / "users-0", 4)
    path.write_bytes(path.read_bytes() * 2)


def replaced(root: Path) -> None:
    path = log_of(root / "logs" / "users-0", 0)
    stat, data = path.stat(), path.read_bytes()
    other = path.with_name("other")
    other.write_bytes(data)
    other.rename(path)
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))


def cleaned(root: Path) -> None:
    checkpoint.write(_file(root, checkpoint.CLEANER_OFFSET), {("orders", 0): 4, ("users", 0): 4})


def truncated(root: Path) -> None:
    checkpoint.write(_file(root, checkpoint.REPLICATION), {("orders", 0): 9, ("users", 0): 5})


def started_later(root: Path) -> None:
    checkpoint.write(_file(root, checkpoint.LOG_START), {("users", 0): 2})


def of_another_policy(root: Path) -> None:
    configure(root, orders={}, users={"cleanup.policy": "delete"})


def of_other_settings(root: Path) -> None:
    configure(root, orders={}, users={"delete.retention.ms": "5"})


def gone(root: Path) -> None:
    (root / "logs" / "users-0").rename(root / "users-0")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (written_again, "00000000000000000004.log was written or replaced"),
        (longer, "00000000000000000004.log has 202 bytes, had 101"),
        (replaced, "00000000000000000000.log was written or replaced"),
        (cleaned, "it is clean up to offset 4, was 0"),
        (truncated, "it can be cleaned up to offset 4, was 8"),
        (started_later, "the log starts at offset 2, was 0"),
        (of_another_policy, "is not to be cleaned by now: cleanup.policy is delete"),
        (of_other_settings, "delete.retention.ms is 5, was 86400000"),
        (gone, "is gone"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_log_that_changed_is_named_and_nothing_is_done(
    root: Path, change: Callable[[Path], None], told: str, words: tuple[str, ...]
) -> None:
    change(root)
    before = state_of(root / "logs")
    ended = carry_out(root, *words)
    assert ended.code == 3
    assert ended.summary["error"].startswith(
        f"{root / 'plan'}: 1 log of the plan changed since it was saved, 20"
    )
    assert f"Z: users-0: {told}" in ended.summary["error"]
    assert ended.summary["error"].endswith("Plan again, with --save, and review it")
    assert state_of(root / "logs") == before


def test_a_tombstone_that_is_cleaned_first_stays_for_its_time_from_the_run_on(root: Path) -> None:
    """C-11: as of the cleaning, not as of the plan; what is due is by the clock of the plan."""
    write_segment(root / "logs" / "users-0", 0, [keyed(0, "aCab")])
    assert save(root).code == 0
    before = root / "before"
    shutil.copytree(root / "logs", before)
    plan_ms = json.loads((root / "plan").read_text())["as_of_ms"]
    ended = carry_out(root, "--report", str(root / "r.json"))
    assert ended.code == 0
    from_ms = ended.summary["horizons_from_ms"]
    assert from_ms > plan_ms == ended.summary["as_of_ms"]
    horizons = [
        decode_header(batch, 0, "").delete_horizon_ms
        for batch in batches_of(root / "logs" / "users-0", 0)
    ]
    [horizon] = [horizon for horizon in horizons if horizon is not None]
    assert horizon == from_ms + 86_400_000
    words = "--against", before, "--run-report", root / "r.json"
    told = "users-0: no report has 1 delete horizon that a cleaning set"
    assert told not in run_command("verify", root / "logs", *words).out
    report = json.loads((root / "r.json").read_text())
    (root / "r.json").write_text(json.dumps(report | {"horizons_from_ms": from_ms - 1}))
    assert told in run_command("verify", root / "logs", *words).out


def test_a_plan_with_a_time_of_its_own_counts_from_there(root: Path) -> None:
    assert save(root, "--as-of", str(int(time.time() * 1000))).code == 0
    said = carry_out(root).summary
    assert said["horizons_from_ms"] == said["as_of_ms"]


def test_a_plan_is_carried_out_once(root: Path) -> None:
    assert carry_out(root).code == 0
    again = carry_out(root)
    assert again.code == 3
    assert "2 logs of the plan changed" in again.summary["error"]


def test_retention_is_reviewed_too(root: Path) -> None:
    """C-18: the first segment is past its time; the other two would be by another setting."""
    own = {"cleanup.policy": "compact,delete", "retention.ms": "100000000000"}
    configure(root, orders={}, users=own)
    assert save(root).code == 0
    configure(root, orders={}, users=own | {"retention.ms": "1"})
    ended = carry_out(root)
    assert (ended.code, "retention.ms is 1, was 100000000000" in ended.summary["error"]) == (
        3,
        True,
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is no plan that plan --save wrote"),
        ("[1]", "is no plan that plan --save wrote"),
        (
            '{"format": "compactor-plan", "version": 3, "made_by": "9.0"}',
            "of version 3, made by 9.0",
        ),
        ('{"format": "compactor-plan", "version": 2}', "says nothing of 'made_by'"),
    ],
)
def test_another_file_is_told_in_words(root: Path, text: str, told: str) -> None:
    (root / "plan").write_text(text)
    ended = carry_out(root)
    assert ended.code == 2
    assert told in ended.summary["error"]


def test_every_field_of_the_file_is_checked(root: Path) -> None:
    """Left out or of another type: told, and nothing done by half of it."""
    whole = json.loads((root / "plan").read_text())
    for name in whole.keys() - {"format", "version"}:
        for damaged in (whole | {name: [[1]]}, {k: v for k, v in whole.items() if k != name}):
            (root / "plan").write_text(json.dumps(damaged))
            ended = carry_out(root)
            assert (name, ended.code) == (name, 2), ended
            assert "damaged" in ended.summary["error"], name


def test_options_for_what_the_plan_says_are_refused(root: Path) -> None:
    for words in ((str(root / "logs"),), ("--include", "users"), ("--as-of", "5")):
        ended = carry_out(root, *words)
        assert (ended.code, "the saved plan says that itself" in ended.summary["error"]) == (
            2,
            True,
        )
    ended = carry_out(root, "--output", str(root / "copy"))
    assert (ended.code, "not with --output" in ended.summary["error"]) == (2, True)
    assert carry_out(root, "--work-dir", str(root)).code == 0


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("logs/plan", "inside of log directory"),
        ("none/plan", "there is no directory"),
        ("logs/../work", "is a directory"),
    ],
)
def test_where_it_cannot_be_saved(root: Path, where: str, told: str) -> None:
    ended = run_command("plan", root / "logs", "--save", root / where)
    assert (ended.code, told in ended.summary["error"]) == (2, True)


def test_settings_from_a_pipe_cannot_be_read_again(root: Path) -> None:
    os.mkfifo(root / "pipe")
    given = "--topic-configs", root / "pipe", "--save", root / "other"
    ended = run_command("plan", root / "logs", *given)
    assert (ended.code, "is no file" in ended.summary["error"]) == (2, True)


@pytest.mark.parametrize("change", [lambda s: s[::-1], lambda s: s + s, lambda s: [s[1], s[0]]])
def test_segments_that_do_not_follow_one_another_make_no_plan(
    root: Path, change: Callable[[list[object]], list[object]]
) -> None:
    plan = json.loads((root / "plan").read_text())
    segments = plan["logs"][0]["segments"]
    assert len(segments) == 2
    plan["logs"][0]["segments"] = change(segments)
    (root / "plan").write_text(json.dumps(plan))
    before = state_of(root / "logs")
    ended = carry_out(root)
    assert (ended.code, "segments" in ended.summary["error"]) == (2, True)
    assert state_of(root / "logs") == before
