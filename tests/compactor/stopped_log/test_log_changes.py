"""`compactor log roll` and its like: Kafka's files afterwards, and what is refused before."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compactor import api
from compactor.errors import RefusedError
from compactor.stopped_log.changes import Outcome
from storage.formats import checkpoint, clean_shutdown
from tests.compactor.stopped_log.kafka_answers import answers
from tests.compactor.stopped_log.made_logs import CLOCK_MS, LOG_END, files_in, make
from tests.compactor.test_log_dir_lock import other_process
from tests.support.local_command import run_command

NAME = "orders-0"
RULES = api.Rules(as_of=CLOCK_MS, any_clock=True, settings={"index.interval.bytes": "0"})
OPTIONS = api.ChangeOptions(rules=RULES, only_replica=True)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path / "log")


def change(made: Path, name: str) -> Outcome:
    """Do what a name of `kafka_answers` says."""
    assert name == "roll"
    return api.log_roll(str(made), NAME, OPTIONS)


@pytest.mark.parametrize("name", ["roll"])
def test_a_change_leaves_the_files_that_kafka_leaves(made: Path, name: str) -> None:
    assert change(made, name).is_changed
    assert files_in(made) == answers()[name]


@pytest.mark.parametrize("name", ["roll"])
def test_a_dry_run_tells_the_same_and_changes_nothing(made: Path, name: str) -> None:
    before = files_in(made)
    told = api.log_roll(str(made), NAME, api.ChangeOptions(rules=RULES, dry_run=True))
    assert files_in(made) == before
    assert told == change(made, name)


class TestRoll:
    def test_it_is_said_what_is_done(self, made: Path) -> None:
        ended = run_command("log", "roll", made, NAME, "--yes")
        assert ended.code == 0
        assert f"begins a new segment at offset {LOG_END}" in ended.out
        assert "segments: 3 becomes 4" in ended.error
        assert ended.summary == {
            "schema_version": 1, "command": "log roll", "status": "ok", "exit_code": 0,
        }  # fmt: skip

    def test_an_empty_active_segment_is_left(self, made: Path) -> None:
        assert run_command("log", "roll", made, NAME, "--yes").code == 0
        before = files_in(made)
        ended = run_command("log", "roll", made, NAME)  # nobody is asked
        assert (ended.code, files_in(made)) == (0, before)
        assert "nothing was changed\n  the active segment is empty" in ended.out

    def test_the_document_has_the_numbers_before_and_after(self, made: Path) -> None:
        document = run_command("log", "roll", made, NAME, "--yes", "--format", "json").summary
        assert document["changed"] is True
        assert (document["before"]["segments"], document["after"]["segments"]) == (3, 4)
        assert document["after"]["last_stable"] == 8


class TestAgreement:
    def test_without_a_terminal_and_yes_nothing_is_done(self, made: Path) -> None:
        before = files_in(made)
        run = subprocess.run(
            [sys.executable, "-m", "compactor", "log", "roll", str(made), NAME],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 3
        assert "give --yes" in run.stderr
        assert "was not confirmed. Nothing was changed" in run.stderr
        assert files_in(made) == before

    @pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("\n", 3), ("n\n", 3)])
    def test_a_terminal_is_asked(
        self, made: Path, answer: str, code: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[Any] = []

        def agrees(lines: list[str], yes: bool) -> bool:
            asked.append((lines, yes))
            return answer.strip() in ("y", "yes")

        monkeypatch.setattr("compactor.command_line.log_change_command.agrees", agrees)
        assert run_command("log", "roll", made, NAME).code == code
        [(lines, yes)] = asked
        assert yes is False
        assert lines[0] == f"{NAME} in {made}:"


class TestRefusals:
    def test_beside_a_broker(self, made: Path) -> None:
        before = files_in(made)
        with other_process(made / ".lock") as said:
            assert said == "locked"
            ended = run_command("log", "roll", made, NAME, "--yes")
        assert ended.code == 3
        assert "locked: a broker or another run works in this log directory" in ended.error
        assert files_in(made) == before

    def test_after_an_unclean_shutdown_unless_it_is_recovered_first(self, made: Path) -> None:
        (made / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        before = files_in(made)
        ended = run_command("log", "roll", made, NAME, "--yes")
        assert (ended.code, files_in(made)) == (3, before)
        assert "--recover-first" in ended.error
        assert run_command("log", "roll", made, NAME, "--yes", "--recover-first").code == 0
        assert not clean_shutdown.exists(str(made))  # no broker has stopped there
        assert (made / NAME / f"{LOG_END:020d}.log").exists()

    def test_a_log_of_that_name_that_is_not_there(self, made: Path) -> None:
        for name in ("orders-1", "orders", "../orders-0", "__cluster_metadata-0"):
            ended = run_command("log", "roll", made, name, "--yes")
            assert (ended.code, "Nothing was changed" in ended.error) == (2, True)

    def test_a_log_that_a_broker_was_moving(self, made: Path) -> None:
        future = made / "orders-0.0123456789abcdef0123456789abcdef-future"
        future.mkdir()
        ended = run_command("log", "roll", made, NAME, "--yes")
        assert ended.code == 3
        assert f"{future.name} is its copy so far" in ended.error

    @pytest.mark.parametrize("cut", [1, 80])
    def test_a_log_that_ends_within_a_batch(self, made: Path, cut: int) -> None:
        segment = made / NAME / "00000000000000000008"
        path = segment.with_suffix(".log")
        os.truncate(path, path.stat().st_size - cut)
        before = files_in(made)
        ended = run_command("log", "roll", made, NAME, "--yes")
        assert (ended.code, files_in(made)) == (1, before)
        assert f"compactor: {segment}." in ended.error
        assert "Nothing was changed" in ended.error

    def test_a_damaged_checkpoint(self, made: Path) -> None:
        path = made / checkpoint.LOG_START
        path.write_text("0\n7\n")
        ended = run_command("log", "roll", made, NAME, "--yes")
        assert ended.code == 1
        assert str(path) in ended.error
        assert clean_shutdown.exists(str(made))

    def test_a_log_that_ends_below_its_start(self, made: Path) -> None:
        """Whoever opens it, a broker too, deletes all of it."""
        checkpoint.write(str(made / checkpoint.LOG_START), {("orders", 0): LOG_END + 1})
        before = files_in(made)
        with pytest.raises(RefusedError, match="deletes every segment"):
            api.log_roll(str(made), NAME, OPTIONS)
        assert files_in(made) == before


def test_other_logs_of_the_directory_are_left_and_their_entries_stay(made: Path) -> None:
    entries = {("orders", 0): LOG_END, ("prices", 3): 77}
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(made / name), entries)
    assert run_command("log", "roll", made, NAME, "--yes").code == 0
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        assert checkpoint.read(str(made / name)) == entries


def test_high_watermarks_that_nobody_noted_are_not_begun(made: Path) -> None:
    (made / checkpoint.REPLICATION).unlink()
    assert run_command("log", "roll", made, NAME, "--yes").code == 0
    assert not (made / checkpoint.REPLICATION).exists()


def test_the_epoch_of_the_broker_stays_in_its_marker(made: Path) -> None:
    clean_shutdown.write(str(made), 42)
    assert run_command("log", "roll", made, NAME, "--yes").code == 0
    assert clean_shutdown.read(str(made)) == 42
