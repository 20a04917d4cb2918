"""Logs set aside for their data are remembered, and left alone until something changes."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from compactor.cleaning import cleaner_manager
from compactor.cleaning.cleaner_manager import RunSettings
from compactor.command_line import cli
from compactor.host.progress import ProgressSink
from compactor.log_dirs.set_aside_memory import SET_ASIDE, MemoryContents, SetAside, decode, encode
from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan
from storage.errors import CorruptFileError
from storage.file_names import file_name
from storage.formats import partition_metadata
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from tests.compactor.cleaning.test_overflow import ACTIVE, ACTIVE_BASE, FAR, FAR_BASE, NEAR
from tests.compactor.small_rounds import flip
from tests.end_to_end import bad_input_logs
from tests.end_to_end.bad_input_logs import LOG, put
from tests.support.file_states import state_of
from tests.support.local_round import LocalRound
from tests.support.made_log import make_partition

COMPACTED = ("--set", "cleanup.policy=compact", "--set", "min.cleanable.dirty.ratio=0")
OF_ALL = ("--include", ".*")  # which plan and run want beside it
ANY_TIME = ("--any-clock",)  # some of these files are of a far future
DAMAGED_AT = 100  # in the second batch


class Ended(NamedTuple):
    code: int
    document: dict[str, Any]
    error: str

    def log(self, topic: str) -> dict[str, Any]:
        logs = [*self.document.get("not_taken", ()), *self.document.get("logs", ())]
        return next(log for log in logs if log["topic"] == topic)


Compactor = Callable[..., Ended]


@pytest.fixture
def compactor(
    local: LocalRound, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Compactor:
    """The command line, its tasks in this process."""
    run_round = cleaner_manager.run_round

    def here(plan: RoundPlan, settings: RunSettings, progress: ProgressSink) -> CleaningReport:
        return run_round(plan, replace(settings, engine=local), progress)

    def run(command: str, *words: object) -> Ended:
        monkeypatch.setattr(cleaner_manager, "run_round", here)
        options = [*COMPACTED, *(OF_ALL if command in ("plan", "run") else ())]
        options += ANY_TIME if command in ("plan", "run", "explain") else ()
        code = cli.main([command, *map(str, words), *options, "--format", "json"])
        said = capsys.readouterr()
        return Ended(code, json.loads(said.out.splitlines()[-1]), said.err)

    return run


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """bad-0, with a bit fallen over, and sound-0."""
    template = bad_input_logs.write_template(tmp_path / "template")
    root = tmp_path / "logs"
    bad_input_logs.make_log_dir(root, template, ["bad", "sound"])
    for path in list(root.glob("*/*")):
        put(path, path.read_bytes())  # no longer shared
    flip(root / "bad-0" / LOG[0], DAMAGED_AT)
    return root


def remembered(log_dir: Path) -> list[dict[str, Any]]:
    path = log_dir / SET_ASIDE
    empty: dict[str, Any] = {"version": 2, "logs": []}
    document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else empty
    assert document["version"] == 2
    logs: list[dict[str, Any]] = document["logs"]
    return logs


def test_a_corrupt_log_is_remembered_and_not_read_again(
    compactor: Compactor, log_dir: Path
) -> None:
    first = compactor("run", log_dir)
    assert (first.code, first.log("sound")["status"]) == (4, "cleaned")
    reason = first.log("bad")["reason"]
    assert reason.startswith(f"{log_dir}/bad-0/{LOG[0]}, byte ")
    (entry,) = remembered(log_dir)
    assert (entry["topic"], entry["partition"], entry["reason"]) == ("bad", 0, reason)
    assert (entry["runs"], entry["first_ms"]) == (1, entry["last_ms"])
    (log_dir / "bad-0").chmod(0o755)
    before = state_of(log_dir)
    again = compactor("run", log_dir)
    assert state_of(log_dir) == before
    log = again.log("bad")
    assert (again.code, log["status"]) == (4, "set-aside")
    assert log["reason"].startswith("set aside since 20")
    assert log["reason"].endswith(
        f" (once) and not changed since; --retry tries it again: {reason}"
    )


def test_retry_counts_and_a_success_forgets(compactor: Compactor, log_dir: Path) -> None:
    compactor("run", log_dir)
    (first,) = remembered(log_dir)
    reason = compactor("run", log_dir, "--retry").log("bad")["reason"]
    assert not reason.startswith("set aside since")
    (entry,) = remembered(log_dir)
    assert (entry["runs"], entry["first_ms"]) == (2, first["first_ms"])
    assert entry["last_ms"] >= first["last_ms"]
    flip(log_dir / "bad-0" / LOG[0], DAMAGED_AT)  # and nothing but the bytes tells
    assert compactor("run", log_dir).log("bad")["status"] == "set-aside"
    assert compactor("run", log_dir, "--retry").log("bad")["status"] == "cleaned"
    assert not (log_dir / SET_ASIDE).exists()


def test_a_log_that_has_changed_is_taken_up_by_itself(compactor: Compactor, log_dir: Path) -> None:
    compactor("run", log_dir)
    path = log_dir / "bad-0" / LOG[0]
    os.utime(path)
    assert not compactor("run", log_dir).log("bad")["reason"].startswith("set aside since")
    assert remembered(log_dir)[0]["runs"] == 2
    flip(path, DAMAGED_AT)
    os.utime(path)
    assert compactor("run", log_dir).log("bad")["status"] == "cleaned"
    assert remembered(log_dir) == []


def test_what_only_looks_shows_it_and_writes_nothing(compactor: Compactor, log_dir: Path) -> None:
    assert compactor("run", log_dir, "--dry-run").log("bad")["status"] == "set-aside"
    assert not (log_dir / SET_ASIDE).exists()
    compactor("run", log_dir)
    before = state_of(log_dir)
    told = "set aside since 20"
    assert compactor("plan", log_dir).log("bad")["reason"].startswith(told)
    assert compactor("run", log_dir, "--dry-run").log("bad")["reason"].startswith(told)
    assert compactor("explain", log_dir, "bad-0").document["reason"].startswith(told)
    assert state_of(log_dir) == before


def test_a_log_that_failed_for_another_reason_is_not_remembered(
    compactor: Compactor, log_dir: Path, local: LocalRound
) -> None:
    local.before["rewrite"] = lambda: os.utime(log_dir / "sound-0" / LOG[0])
    assert compactor("run", log_dir).log("sound")["status"] == "failed"
    assert [entry["topic"] for entry in remembered(log_dir)] == ["bad"]


def test_a_log_that_is_gone_is_forgotten(compactor: Compactor, log_dir: Path) -> None:
    compactor("run", log_dir)
    (log_dir / "bad-0").rename(log_dir.parent / "bad-0")
    assert compactor("run", log_dir).code == 0
    assert remembered(log_dir) == []


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[" * 100_000, b'{"version":1,"logs":[{}]}', b"\xff"]
)
def test_a_damaged_memory_stops_nothing_and_is_left_to_be_looked_at(
    compactor: Compactor, log_dir: Path, data: bytes
) -> None:
    path = log_dir / SET_ASIDE
    path.write_bytes(data)
    ended = compactor("run", log_dir)
    assert (ended.log("bad")["status"], ended.log("sound")["status"]) == ("set-aside", "cleaned")
    assert path.read_bytes() == data
    (warning,) = ended.document["warnings"]
    assert warning.startswith(f"{path}, byte ")
    assert warning.endswith("it is ignored, and nothing is remembered until it is removed")
    assert f"compactor: warning: {warning}\n" in ended.error
    assert compactor("plan", log_dir).document["warnings"] == [warning]


def test_a_memory_that_is_a_pipe_is_not_waited_for(compactor: Compactor, log_dir: Path) -> None:
    os.mkfifo(log_dir / SET_ASIDE)
    (warning,) = compactor("run", log_dir).document["warnings"]
    assert "is a pipe, not a file" in warning


def name_topic(log_dir: Path, number: int) -> None:
    """Without a trace in what a listing shows: the files are as large, as old and the same."""
    path = log_dir / "bad-0" / PARTITION_METADATA
    metadata = partition_metadata.encode(PartitionMetadata(0, UUID(int=number)))
    path.write_bytes(metadata)
    os.utime(path, ns=(0, 0))


def test_a_topic_that_was_created_anew_is_read_and_counted_anew(
    compactor: Compactor, log_dir: Path
) -> None:
    name_topic(log_dir, 1)
    compactor("run", log_dir)
    compactor("run", log_dir, "--retry")
    name_topic(log_dir, 1)
    told = compactor("run", log_dir).log("bad")["reason"]
    assert told.startswith("set aside since 20") and "(2 times)" in told
    (before,) = remembered(log_dir)
    assert (before["runs"], before["topic_id"]) == (2, "AAAAAAAAAAAAAAAAAAAAAQ")
    name_topic(log_dir, 2)
    assert [log["topic"] for log in compactor("plan", log_dir).document["logs"]] == ["bad"]
    assert not compactor("run", log_dir).log("bad")["reason"].startswith("set aside since")
    (entry,) = remembered(log_dir)
    assert (entry["runs"], entry["topic_id"]) == (1, "AAAAAAAAAAAAAAAAAAAAAg")
    assert entry["first_ms"] > before["first_ms"]


def test_what_an_older_version_remembers_is_read(compactor: Compactor, log_dir: Path) -> None:
    """It wrote no topic id: the files alone decide."""
    name_topic(log_dir, 1)
    compactor("run", log_dir)
    (entry,) = remembered(log_dir)
    del entry["topic_id"]
    (log_dir / SET_ASIDE).write_text(json.dumps({"version": 1, "logs": [entry]}))
    assert compactor("run", log_dir).log("bad")["reason"].startswith("set aside since 20")
    compactor("run", log_dir, "--retry")
    (entry,) = remembered(log_dir)
    assert (entry["runs"], entry["topic_id"]) == (2, "AAAAAAAAAAAAAAAAAAAAAQ")


ENTRIES = MemoryContents(
    {
        ("bad", 0): SetAside(
            "a \u2026 \udcff reason", 3, 1_700_000_000_000, 1_700_000_000_001, "ab", "AA"
        ),
        ("worse", 12): SetAside("", 1, 5, 5, "cd"),
    }
)


def test_what_is_written_is_read_again() -> None:
    assert decode(encode(ENTRIES), "f") == ENTRIES
    assert encode(ENTRIES).isascii()


def test_a_memory_cut_short_or_with_a_byte_changed_has_a_file_and_a_position() -> None:
    data = encode(ENTRIES)
    damaged = [data[:length] for length in range(len(data) - 2)]
    for at in range(len(data)):
        damaged += [
            data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :] for bit in (1, 4, 0x10, 0x80)
        ]
    found = 0
    for each in damaged:
        try:
            decode(each, "f")  # a letter of a reason may be another one
        except CorruptFileError as error:
            assert error.path == "f" and 0 <= error.position <= len(data)
            found += 1
    assert found > len(damaged) // 2


def test_a_round_may_be_told_to_fail_before_anything_is_swapped(
    compactor: Compactor, log_dir: Path
) -> None:
    before = state_of(log_dir)
    ended = compactor("run", log_dir, "--on-corrupt", "fail")
    assert (ended.code, ended.document["status"]) == (1, "failed")
    told = f"compactor: bad-0: {log_dir}/bad-0/{LOG[0]}, byte "
    last = ended.error.splitlines()[-1]
    assert last.startswith(told) and last.endswith("(--on-corrupt fail). Nothing was changed.")
    assert state_of(log_dir) == before


def test_so_does_a_log_that_the_plan_or_an_earlier_run_has_found(
    compactor: Compactor, log_dir: Path
) -> None:
    compactor("run", log_dir)
    before = state_of(log_dir)
    ended = compactor("run", log_dir, "--on-corrupt", "fail")
    assert ended.code == 1 and "bad-0: set aside since" in ended.error
    active = log_dir / "bad-0" / LOG[2]
    put(active, active.read_bytes()[:-1])  # seen by the plan
    before = state_of(log_dir)
    ended = compactor("run", log_dir, "--on-corrupt", "fail")
    assert ended.code == 1 and f"bad-0: {log_dir}/bad-0/" in ended.error
    assert state_of(log_dir) == before


def add_too_wide(log_dir: Path) -> Path:
    """A partition of which a segment is to be split."""
    wide = make_partition(log_dir.parent / "wide", {0: [NEAR], ACTIVE_BASE: [ACTIVE]}, "wide-0")
    (wide / LOG[0]).write_bytes(NEAR + FAR)
    for path in wide.glob("*.snapshot"):
        path.unlink()
    return wide.rename(log_dir / wide.name)


def test_a_segment_that_was_split_before_is_reported(compactor: Compactor, log_dir: Path) -> None:
    """C-16.3: the split keeps every batch as it is, and comes before the data is looked at."""
    wide = add_too_wide(log_dir)
    words = "run", log_dir, "--assume-fully-replicated", "--on-corrupt", "fail"
    ended = compactor(*words)
    assert ended.code == 1 and "bad-0: " in ended.error
    assert (wide / file_name(FAR_BASE, ".log")).read_bytes() == FAR
    told = "Nothing was changed, except for segments that were split first, batch by batch."
    assert ended.error.splitlines()[-1].endswith(told)


def test_what_the_plan_has_found_ends_a_round_before_any_split(
    compactor: Compactor, log_dir: Path
) -> None:
    add_too_wide(log_dir)
    active = log_dir / "bad-0" / LOG[2]
    put(active, active.read_bytes()[:-1])  # seen by the plan
    before = state_of(log_dir)
    ended = compactor("run", log_dir, "--assume-fully-replicated", "--on-corrupt", "fail")
    assert ended.code == 1 and f"bad-0: {log_dir}/bad-0/" in ended.error
    assert state_of(log_dir) == before


def test_sound_logs_are_no_reason_to_fail(compactor: Compactor, log_dir: Path) -> None:
    flip(log_dir / "bad-0" / LOG[0], DAMAGED_AT)
    assert compactor("run", log_dir, "--on-corrupt", "fail").code == 0
