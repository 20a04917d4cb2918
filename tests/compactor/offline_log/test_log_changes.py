"""`compactor log roll` and its like: Kafka's files afterwards, and what is refused before."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor import api
from compactor.errors import RefusedError
from compactor.offline_log.truncate import Outcome
from compactor.settings.own_writes import OWN_WRITES
from storage.formats import checkpoint, clean_shutdown
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.compactor.offline_log.kafka_answers import answers
from tests.compactor.offline_log.made_logs import CLOCK_MS, LOG_END, files_in, make
from tests.storage.log.test_cluster_metadata import A, batches, config, log, topic
from tests.support.local_command import Ended, run_command

NAME = "orders-0"
RULES = api.Rules(as_of=CLOCK_MS, any_clock=True, settings={"index.interval.bytes": "0"})
OPTIONS = api.ChangeOptions(rules=RULES, only_replica=True)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path / "log")


TOMBSTONE = api.NewRecord(b"a", None, headers=((b"why", b"asked"),))
NAMES = list(answers())


def offsets(made: Path) -> dict[str, Any]:
    return run_command("log", "offsets", made, NAME, "--format", "json").summary


def change(made: Path, name: str, options: api.ChangeOptions = OPTIONS) -> Outcome:
    """Do what a name of `kafka_answers` says."""
    command, _, word = name.partition(" ")
    match command:
        case "roll":
            return api.log_roll(str(made), NAME, options)
        case "delete-records":
            return api.log_delete_records(str(made), NAME, int(word), options)
        case "truncate":
            return api.log_truncate(str(made), NAME, int(word), options)
        case "append":
            return api.log_append(str(made), NAME, [TOMBSTONE], word or "none", options)
        case "abort":
            return api.log_abort(str(made), NAME, 8, options)
    raise AssertionError(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_leaves_the_files_that_kafka_leaves(made: Path, name: str) -> None:
    assert change(made, name).is_changed
    (made / OWN_WRITES).unlink(missing_ok=True)
    assert files_in(made) == answers()[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_tells_the_same_and_changes_nothing(made: Path, name: str) -> None:
    before = files_in(made)
    told = change(made, name, replace(OPTIONS, dry_run=True))
    assert files_in(made) == before
    assert told == change(made, name)


@pytest.mark.parametrize("name", NAMES)
def test_other_replicas_have_to_be_thought_of(made: Path, name: str) -> None:
    options = api.ChangeOptions(rules=RULES)
    if name == "roll":
        assert change(made, name, options).is_changed
        return
    before = files_in(made)
    with pytest.raises(RefusedError, match=r"Say --only-replica .* Nothing was changed"):
        change(made, name, options)
    assert files_in(made) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("roll", ["begins a new segment at offset 10", "segments: 3 becomes 4"]),
        (
            "delete-records --before 5",
            ["log start offset: 0 becomes 5", "1 segment goes with nothing else"],
        ),
        ("delete-records", ["log start offset: 0 becomes 10"]),
        ("truncate --to 4", ["log end offset: 10 becomes 4"]),
        (
            "abort --producer-id 8",
            ["last stable offset: 8 becomes 11", "In __transaction_state nothing is changed"],
        ),
    ],
)
def test_it_is_said_what_changes_and_the_log_is_sound(
    made: Path, words: str, said: list[str]
) -> None:
    verb, *options = words.split()
    options += ["--yes"] if verb == "roll" else ["--yes", "--only-replica"]
    ended = run_command("log", verb, made, NAME, *options)
    assert (ended.code, [text for text in said if text not in ended.out]) == (0, [])
    assert api.verify(str(made)).findings == []


class TestRoll:
    def test_it_is_said_what_is_done(self, made: Path) -> None:
        ended = run_command("log", "roll", made, NAME, "--yes")
        assert ended.code == 0
        assert f"begins a new segment at offset {LOG_END}" in ended.out
        assert ended.out.count("segments: 3 becomes 4") == 1
        assert "becomes" not in ended.error, "told once"
        told = ["schema_version", "command", "status", "exit_code", "reason_code", "changed"]
        assert [ended.summary[name] for name in told] == [2, "log roll", "ok", 0, "done", True]

    def test_an_empty_active_segment_is_left(self, made: Path) -> None:
        assert run_command("log", "roll", made, NAME, "--yes").code == 0
        before = files_in(made)
        ended = run_command("log", "roll", made, NAME)  # nobody is asked
        assert (ended.code, files_in(made)) == (0, before)
        assert "nothing was changed\n  the active segment is empty" in ended.out


class TestDeleteRecords:
    def test_time_and_size_do_not_count(self, made: Path) -> None:
        """The records are from 2023, and retention.ms would have them all gone."""
        settings = ["--set", "retention.ms=1", "--set", "retention.bytes=1"]
        words = ["--before", 1, "--only-replica", "--yes", *settings]
        assert run_command("log", "delete-records", made, NAME, *words).code == 0
        assert offsets(made)["segments"] == 3

    def test_what_is_not_there_to_delete(self, made: Path) -> None:
        """L-23.1, EE-143."""
        before = files_in(made)
        words = ["--only-replica", "--yes"]
        ended = run_command("log", "delete-records", made, NAME, "--before", -2, *words)
        assert ended.code == 2
        ended = run_command("log", "delete-records", made, NAME, "--before", 11, *words)
        assert (ended.code, "--before 11: the log ends at offset 10" in ended.error) == (2, True)
        ended = run_command("log", "delete-records", made, NAME, "--before", 0, *words)
        assert (ended.code, "does not begin before that" in ended.out) == (0, True)
        assert files_in(made) == before

    def test_of_a_compacted_topic_nothing_is_deleted(self, made: Path, tmp_path: Path) -> None:
        """L-23.2, EE-143: with `delete` beside it, or with neither, records are."""
        before = files_in(made)
        configs = tmp_path / "topics.json"
        configs.write_text('{"orders": {"cleanup.policy": "compact"}}')
        words = ["--before", 5, "--only-replica", "--yes", "--topic-configs", configs]
        ended = run_command("log", "delete-records", made, NAME, *words)
        assert (ended.code, files_in(made)) == (3, before)
        assert "Kafka deletes no records of such a topic" in ended.error
        for policy in ("compact,delete", ""):
            configs.write_text(f'{{"orders": {{"cleanup.policy": "{policy}"}}}}')
            dry = run_command("log", "delete-records", made, NAME, *words, "--dry-run")
            assert (dry.code, "log start offset: 0 becomes 5" in dry.out) == (0, True)

    def test_a_metadata_log_says_how_the_topic_is_configured(
        self, made: Path, tmp_path: Path
    ) -> None:
        """In LOG_DIR itself, or where --metadata says; without one Kafka's default holds."""
        words = ["log", "delete-records", made, NAME, "--before", 5, "--only-replica", "--dry-run"]
        assert run_command(*words).code == 0
        there = tmp_path / "elsewhere" / METADATA_DIR
        there.mkdir(parents=True)
        policy = config("cleanup.policy", "compact", NAME.removesuffix("-0"))
        log(there, 0, batches(0, topic(NAME.removesuffix("-0"), A), policy))
        named = run_command(*words, "--metadata", there.parent)
        assert (named.code, "no records of such a topic" in named.error) == (3, True)
        there.rename(made / METADATA_DIR)
        found = run_command(*words)
        assert (found.code, "no records of such a topic" in found.error) == (3, True)


class TestTruncate:
    def test_within_a_batch_the_log_ends_before_it(self, made: Path) -> None:
        """Offsets 6 and 7 are one batch. Kafka would say 7 now, and 6 after its next start."""
        ended = run_command("log", "truncate", made, NAME, "--to", 7, "--only-replica", "--yes")
        assert "from offset 6 on, where the batch that holds 7 begins" in ended.out
        assert offsets(made)["log_end"] == 6

    def test_the_cleaner_begins_again_where_it_has_to(self, made: Path) -> None:
        path = str(made / checkpoint.CLEANER_OFFSET)
        checkpoint.write(path, {("orders", 0): 8, ("prices", 1): 9})
        run_command("log", "truncate", made, NAME, "--to", 6, "--only-replica", "--yes")
        assert checkpoint.read(path) == {("orders", 0): 4, ("prices", 1): 9}

    def test_where_the_log_ends_already_or_is_not(self, made: Path) -> None:
        before = files_in(made)
        ended = run_command("log", "truncate", made, NAME, "--to", 10, "--only-replica")
        assert (ended.code, "ends there already" in ended.out) == (0, True)
        ended = run_command("log", "truncate", made, NAME, "--to", 11, "--only-replica", "--yes")
        assert (ended.code, "the log holds offsets 0 up to 10" in ended.error) == (2, True)
        assert files_in(made) == before


class TestAppend:
    def append(self, made: Path, lines: str, *words: object) -> Ended:
        path = made.parent / "records.jsonl"
        path.write_text(lines)
        options = ["--records", path, "--only-replica", "--yes", *words]
        return run_command("log", "append", made, NAME, *options)

    def test_records_of_every_kind(self, made: Path) -> None:
        lines = (
            '{"key": "a", "value": null, "timestamp": 1699999999999}\n\n'
            '{"key": {"hex": "00ff"}, "value": {"base64": "/w=="}, "headers": [["h", null]]}\n'
            '{"value": "no key"}\n'
        )
        ended = self.append(made, lines, "--codec", "gzip")
        assert ended.code == 0
        assert "appends 3 records (1 of them without a value) in 1 batch from offset 10 on" in (
            ended.out
        )
        rows = [r for r in api.dump(str(made / NAME)) if r["kind"] == "record"][-3:]
        assert [(r["offset"], r["key"], r["value"]) for r in rows] == [
            (10, "a", None), (11, {"hex": "00ff"}, {"hex": "ff"}), (12, None, "no key"),
        ]  # fmt: skip
        assert (rows[0]["timestamp"], rows[1]["headers"]) == (1699999999999, [["h", None]])
        assert offsets(made)["epochs"][-1] == {"epoch": 5, "start_offset": 8, "end_offset": 13}

    def test_a_record_without_a_time_goes_from_log_to_log_without_one(self, made: Path) -> None:
        """`log read --format json` writes null for it; only a line without the field gets one."""
        lines = '{"key": "a", "value": "1", "timestamp": null}\n{"key": "b", "value": "2"}\n'
        assert self.append(made, lines).code == 0
        read = run_command("log", "read", made, NAME, "--from", 10, "--format", "json")
        assert self.append(made, read.out).code == 0
        rows = [r for r in api.dump(str(made / NAME)) if r["kind"] == "record"][-4:]
        times = [row["timestamp"] for row in rows]
        assert times[::2] == [None, None]
        assert times[1] == times[3] > 0

    def test_many_records_come_in_batches(self, made: Path) -> None:
        lines = "".join(f'{{"key": "{n}", "value": "{"v" * 100}"}}\n' for n in range(1000))
        ended = self.append(made, lines, "--codec", "lz4", "--set", "segment.bytes=10000")
        assert ended.code == 0
        batches = [r for r in api.dump(str(made / NAME)) if r["kind"] == "batch"]
        assert len([b for b in batches if b["base_offset"] >= 10]) == 8
        assert offsets(made)["log_end"] == 1010
        assert api.verify(str(made)).findings == []

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("{", "is not JSON"),
            ("[]", "expected an object"),
            ('{"key": "a"}', "has no value; a tombstone is written with null"),
            ('{"key": "a", "value": 5}', "value: expected text, null"),
            ('{"key": {"hex": "0"}, "value": ""}', "key: not hex"),
            ('{"key": {"base64": "*"}, "value": ""}', "key: not base64"),
            ('{"value": "", "timestamp": "noon"}', "timestamp 'noon': expected milliseconds"),
            ('{"value": "", "headers": {"a": "b"}}', "headers: expected a list of pairs"),
            ('{"value": "", "headers": [[null, "b"]]}', "headers: a header has a name"),
            ('{"value": "", "vlaue": ""}', "no field is named 'vlaue'"),
        ],
    )
    def test_a_line_that_is_no_record(self, made: Path, line: str, problem: str) -> None:
        before = files_in(made)
        ended = self.append(made, '{"value": "fine"}\n' + line)
        assert (ended.code, files_in(made)) == (2, before)
        assert f"records.jsonl, line 2: {problem}" in ended.error

    @pytest.mark.parametrize(
        ("line", "setting", "problem"),
        [
            ('{"value": "no key"}', "cleanup.policy=compact", "record 0 of the batch"),
            ('{"key": "k", "value": "v"}', "max.message.bytes=69", "max.message.bytes is 69"),
            ('{"value": "v", "timestamp": 9999999999999}', "segment.ms=5", "record 0 of"),
        ],
    )
    def test_what_a_leader_refuses(
        self, made: Path, line: str, setting: str, problem: str, tmp_path: Path
    ) -> None:
        """The first batch would have been taken."""
        before = files_in(made)
        name, _, value = setting.partition("=")
        configs = tmp_path / "topics.json"
        configs.write_text(f'{{"orders": {{"{name}": "{value}"}}}}')
        first = '{"key": "k", "value": "%s"}\n' % ("v" * 17_000)
        lines = line if "max" in setting else first + line
        ended = self.append(made, lines, "--topic-configs", configs)
        assert (ended.code, files_in(made)) == (1, before), ended
        assert problem in ended.error
        assert "Nothing was changed" in ended.error


class TestAbort:
    def abort(self, made: Path, producer_id: int) -> Ended:
        options = ["--producer-id", producer_id, "--only-replica", "--yes"]
        return run_command("log", "abort", made, NAME, *options)

    def test_a_second_time_there_is_nothing_to_end(self, made: Path) -> None:
        self.abort(made, 8)
        before = files_in(made)
        ended = self.abort(made, 8)
        assert (ended.code, files_in(made)) == (2, before)
        assert "--producer-id 8: has no open transaction in this log" in ended.error

    def test_a_producer_without_one(self, made: Path) -> None:
        ended = self.abort(made, 7)
        assert "--producer-id 7: has no open transaction in this log; producers that have: 8" in (
            ended.error
        )


def unclean(made: Path) -> None:
    """As a broker leaves it that was killed before an index was written."""
    (made / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    for index in (made / NAME).glob("*.timeindex"):
        index.unlink()


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

    def test_without_it_nothing_is_recovered_first(self, made: Path) -> None:
        unclean(made)
        before = files_in(made)
        run = subprocess.run(
            [sys.executable, "-m", "compactor", "log", "roll", str(made), NAME, "--recover-first"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 3
        assert "the recovery was not confirmed. Nothing was changed" in run.stderr
        assert files_in(made) == before
        assert '"changed":false' in run.stdout

    def test_what_was_recovered_before_the_second_question_is_said(
        self, made: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of two questions the first is about the recovery, the second about the change."""
        unclean(made)
        before = files_in(made)
        asked: list[str] = []

        def agrees(lines: list[str], _: bool) -> bool:
            asked.append(lines[0])
            if len(asked) == 1:
                assert files_in(made) == before
            return len(asked) == 1

        monkeypatch.setattr("compactor.command_line.log_change_command.agrees", agrees)
        ended = run_command("log", "roll", made, NAME, "--recover-first")
        assert ended.code == 3
        assert asked[0].startswith(f"{made}: no broker has stopped cleanly here. ")
        assert asked[1:] == [f"{NAME} in {made}:"]
        assert "roll was not confirmed. Logs that the broker had not left in good" in ended.error
        assert "Nothing was changed" not in ended.error
        assert ended.summary["changed"] is True
        assert files_in(made) != before

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


@pytest.mark.parametrize(("beyond_ms", "is_taken"), [(0, True), (1, False)])
def test_an_append_obeys_how_far_ahead_a_topic_lets_a_time_be(
    made: Path, beyond_ms: int, is_taken: bool
) -> None:
    """L-13.5, by the topic's own setting: the default is an hour."""
    own = {"orders": {"message.timestamp.after.max.ms": "5000"}}
    options = replace(OPTIONS, rules=replace(RULES, topic_configs=own))
    record = api.NewRecord(b"a", b"b", CLOCK_MS + 5000 + beyond_ms)
    if is_taken:
        assert api.log_append(str(made), NAME, [record], "none", options).is_changed
        return
    before = files_in(made)
    with pytest.raises(api.LogCompactionError):
        api.log_append(str(made), NAME, [record], "none", options)
    assert files_in(made) == before
