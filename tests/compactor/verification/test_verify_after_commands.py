"""`verify --against` after sequences of commands that lose nothing, and where something is lost.

The logs are those of a broker's storage engine; each command is carried out as from the command
line, with its tasks in this process.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from compactor import Log, LogOptions
from compactor.host.clock import now_ms
from storage.file_names import LOG, file_name
from storage.formats import checkpoint, clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.scheduler import ManualScheduler
from tests.histories.cuts import Cuts, Limits
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.log_builder import Batch, Message, append

LOG_NAME = "t-0"
DAY_MS = 86_400_000
RETAINED = {"cleanup.policy": "compact,delete", "retention.ms": "1000"}
SMALL_GROUPS = {"segment.bytes": "200", "min.cleanable.dirty.ratio": "0"}


class Place:
    """A log directory with one log, its copy from before, and the settings of its topic."""

    def __init__(self, root: Path, **settings: str) -> None:
        self.now, self.before = root / "now", root / "before"
        root.mkdir(exist_ok=True)
        self._settings = root / "topics.json"
        self.configure(**settings)
        self.written_ms = now_ms() - DAY_MS

    def configure(self, **settings: str) -> None:
        self._settings.write_text(json.dumps({"t": {"cleanup.policy": "compact", **settings}}))

    def write(self, *segments: str) -> None:
        """A letter a record, a capital for a tombstone of its key; a batch for each two."""
        clock = self.written_ms
        options = LogOptions(clock=lambda: clock, scheduler=ManualScheduler(lambda: clock))
        path = self.now / LOG_NAME
        path.mkdir(parents=True)
        with Log.open(str(path), options) as log:
            for number, letters in enumerate(segments):
                if number:
                    log.roll()
                for at in range(0, len(letters), 2):
                    append(log, Batch([self._message(x) for x in letters[at : at + 2]]))
            self.end = log.log_end_offset
        self.set_times()
        for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
            checkpoint.write(str(self.now / name), {("t", 0): self.end})
        (self.now / clean_shutdown.CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":-1}')

    def set_times(self) -> None:
        """No segment is younger than its records."""
        for segment in (self.now / LOG_NAME).glob(f"*{LOG}"):
            os.utime(segment, (self.written_ms / 1000, self.written_ms / 1000))

    def _message(self, letter: str) -> Message:
        value = None if letter.isupper() else letter.encode() * 20
        return Message(letter.lower().encode(), value, self.written_ms)

    def copy(self) -> None:
        shutil.copytree(self.now, self.before)

    def run(self, *words: object) -> Ended:
        return run_command("run", self.now, "--topic-configs", self._settings, *words)

    def verify(self, *words: object) -> Ended:
        return run_command("verify", self.now, "--against", self.before, *words)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    use_local_rounds(monkeypatch, tmp_path / "work")
    return Place(tmp_path, **{"min.cleanable.dirty.ratio": "0"})


def require_sound(ended: Ended) -> None:
    assert (ended.code, ended.summary["against"]["findings"]) == (0, 0), ended.out
    assert "start no broker" not in ended.out


def findings(ended: Ended) -> list[dict[str, Any]]:
    assert ended.code == 4
    found: list[dict[str, Any]] = json.loads(ended.out)["findings"]
    return found


def test_a_log_that_is_rolled_is_whole_and_so_it_is_once_it_is_cleaned(place: Place) -> None:
    place.write("ababAB")
    place.copy()
    assert run_command("log", "roll", place.now, LOG_NAME, "--yes").code == 0
    require_sound(place.verify())
    assert place.run().summary["totals"]["logs"]["cleaned"] == 1
    ended = place.verify()
    require_sound(ended)
    assert ended.summary["against"]["gone"]["superseded"] == 4


def test_a_record_that_is_gone_from_a_rolled_log_is_found(place: Place) -> None:
    place.write("abcd")
    place.copy()
    run_command("log", "roll", place.now, LOG_NAME, "--yes")
    path = place.now / LOG_NAME / file_name(0, LOG)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    problems = [finding["problem"] for finding in findings(place.verify("--format", "json"))]
    assert "offset 2: the latest record of its key is gone without a reason" in problems


def test_appended_records_are_no_findings_and_may_supersede(place: Place, tmp_path: Path) -> None:
    place.write("abab", "a")
    place.copy()
    records = tmp_path / "new.jsonl"
    records.write_text('{"key": "b", "value": "new"}\n{"key": "c", "value": "new"}\n')
    words = ["log", "append", place.now, LOG_NAME, "--records", records, "--only-replica", "--yes"]
    assert run_command(*words).code == 0
    require_sound(place.verify())
    run_command("log", "roll", place.now, LOG_NAME, "--yes")
    assert place.run().summary["totals"]["records"]["dropped"]["superseded"] == 4
    ended = place.verify()
    require_sound(ended)
    assert "what is there from offset 5 on was appended since" in " ".join(ended.out.split())


def test_epochs_that_a_loading_broker_forgets_are_not_missed(place: Place) -> None:
    """A broker that starts notes an epoch at the log end, where there may never be a record."""
    place.write("abab", "a")
    (place.now / LOG_NAME / LEADER_EPOCH_CHECKPOINT).write_text(f"0\n2\n0 0\n1 {place.end}\n")
    (place.now / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    place.copy()
    assert place.run("--recover-first").code == 0
    assert f"1 {place.end}" not in (place.now / LOG_NAME / LEADER_EPOCH_CHECKPOINT).read_text()
    require_sound(place.verify())


@pytest.mark.parametrize("epochs", ["0\n1\n1 0\n", "0\n2\n0 0\n1 3\n", "0\n0\n"])
def test_an_epoch_of_a_record_is_missed(place: Place, epochs: str) -> None:
    place.write("abab", "a")
    (place.now / LOG_NAME / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n0 0\n1 4\n")
    place.copy()
    (place.now / LOG_NAME / LEADER_EPOCH_CHECKPOINT).write_text(epochs)
    [finding] = findings(place.verify("--format", "json"))
    assert finding["path"] == str(place.now / LOG_NAME / LEADER_EPOCH_CHECKPOINT)
    assert finding["problem"].startswith("has changed")


def test_a_run_that_was_interrupted_anywhere_and_completed_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that were swapped in before have the horizons of the run that was interrupted."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    moments = set()
    for changes in (*range(12), *range(12, 60, 3)):  # groups are swapped in at the first ones
        place = Place(tmp_path / str(changes), **SMALL_GROUPS)
        place.write("abcdAB", "efghEF", "ijklIJ", "a")
        place.copy()
        limits = Limits(by_log={LOG_NAME: changes}, ends_at=checkpoint.CLEANER_OFFSET)
        cuts = Cuts([place.now], tmp_path / "trash", limits)
        first, second = place.written_ms + 1_000, place.written_ms + 9_000
        with cuts.applied():
            place.run("--as-of", first)
        assert place.run("--as-of", second).code == 0
        ended = place.verify("--format", "json")
        assert ended.code == 0, (changes, ended.out)
        [partition] = json.loads(ended.out)["partitions"]
        moments.add(partition["horizon_moments"])
        if moments == {1, 2} and changes >= 24:
            break
    assert 2 in moments


@pytest.mark.parametrize("segments", [("abab", "ab"), ("abab", "a", "")])
def test_a_log_that_retention_has_emptied(place: Place, segments: tuple[str, ...]) -> None:
    place.configure(**RETAINED)
    place.write(*segments)
    place.copy()
    assert place.run().code == 0
    assert not any(p.stat().st_size for p in (place.now / LOG_NAME).glob(f"*{LOG}"))
    ended = place.verify()
    require_sound(ended)
    assert ended.summary["against"]["gone"]["below_log_start"] > 0


class TestWhatIsRemoved:
    """Each with what shows it, and without: then it is unexplained, and a source is named."""

    def report(self, place: Place, name: str) -> Path:
        return place.now.parent / f"{name}.json"

    def change(self, place: Place, verb: str, *words: object, name: str = "change") -> Path:
        report = self.report(place, name)
        command = ["log", verb, place.now, LOG_NAME, *words, "--only-replica", "--yes"]
        assert run_command(*command, "--report", report).code == 0
        return report

    def test_a_truncation(self, place: Place) -> None:
        place.write("abcd", "ab")
        place.copy()
        report = self.change(place, "truncate", "--to", 2)
        found = findings(place.verify("--format", "json"))
        finding, *_ = [each for each in found if each["reason_code"] == "unexplained"]
        assert finding["problem"] == (
            "log end offset 2, before 6; the report of compactor log truncate (--run-report) would "
            "explain it"
        )
        ended = place.verify("--run-report", report)
        require_sound(ended)
        assert ended.summary["against"]["gone"]["truncated"] == 4
        assert ended.summary["against"]["soundness"] == {"whole": 0, "removed": 1, "unexplained": 0}

    def test_a_truncation_from_before_the_copy(self, place: Place) -> None:
        place.write("abcd", "ab")
        report = self.change(place, "truncate", "--to", 2)
        document = json.loads(report.read_text())
        report.write_text(json.dumps(document | {"started_at_ms": place.written_ms - 1}))
        place.copy()
        path = place.now / LOG_NAME / file_name(0, LOG)
        path.write_bytes(b"")
        assert place.verify("--run-report", report).code == 4

    def test_a_record_that_went_before_a_truncation(self, place: Place) -> None:
        """Its successor was truncated later: the key is lost, and the reports show why."""
        place.write("ab", "ab", "c")
        place.copy()
        run = self.report(place, "run")
        assert place.run("--report", run).code == 0
        report = self.change(place, "truncate", "--to", 2)
        ended = place.verify("--run-report", report, "--run-report", run)
        assert ended.summary["against"]["findings"] == 0
        assert place.verify("--run-report", run).summary["against"]["findings"] > 0

    def test_a_record_whose_successor_was_truncated_before_any_run(self, place: Place) -> None:
        """The run saw no successor: it did not remove the record, whoever else has."""
        place.write("ab", "ab", "c")
        place.copy()
        report = self.change(place, "truncate", "--to", 2)
        run = self.report(place, "run")
        assert place.run("--report", run).code == 0
        given = ["--run-report", report, "--run-report", run]
        require_sound(place.verify(*given))
        (place.now / LOG_NAME / file_name(0, LOG)).write_bytes(b"")
        problems = [each["problem"] for each in findings(place.verify(*given, "--format", "json"))]
        assert "offset 1: the latest record of its key is gone without a reason" in problems

    @pytest.mark.parametrize("before", [2, 3])
    def test_records_that_were_deleted(self, place: Place, before: int) -> None:
        place.write("abcd", "efgh")
        place.copy()
        report = self.change(place, "delete-records", "--before", before)
        ended = place.verify("--run-report", report)
        require_sound(ended)

    def test_a_log_start_that_nothing_shows(self, tmp_path: Path, place: Place) -> None:
        """A broker drops the entry of a log that begins where its first segment does."""
        place.write("ab", "cd", "ef")
        place.copy()
        report = self.change(place, "delete-records", "--before", 2)
        settings = tmp_path / "retained.json"
        settings.write_text(json.dumps({"t": {"cleanup.policy": "compact"}}))
        ended = place.verify("--format", "json")
        [finding] = findings(ended)
        assert finding["reason_code"] == "unexplained"
        assert "the log begins at offset 2, before at 0" in finding["problem"]
        said = " ".join(place.verify().out.split())
        assert "Next: compare again, and give --run-report, the report of each command" in said
        assert "--topic-configs with retention.ms, would explain it" in finding["problem"]
        [finding] = findings(place.verify("--topic-configs", settings, "--format", "json"))
        assert "cleanup.policy of its topic has no delete" in finding["problem"]
        require_sound(place.verify("--topic-configs", settings, "--run-report", report))
        for retention_ms, is_sound in ((DAY_MS // 2, True), (2 * DAY_MS, False)):
            policy = {"cleanup.policy": "compact,delete", "retention.ms": str(retention_ms)}
            settings.write_text(json.dumps({"t": policy}))
            assert (place.verify("--topic-configs", settings).code == 0) is is_sound

    def test_a_first_segment_that_was_removed_by_hand(self, tmp_path: Path, place: Place) -> None:
        """Settings would allow it, but who deletes a segment cuts the leader epochs, too."""
        place.write("ab", "cd", "ef")
        place.copy()
        for path in (place.now / LOG_NAME).glob(f"{0:020d}.*"):
            path.unlink()
        settings = tmp_path / "retained.json"
        settings.write_text(json.dumps({"t": RETAINED}))
        gone, finding = findings(place.verify("--topic-configs", settings, "--format", "json"))
        assert "records are gone from its beginning" in gone["problem"]
        assert "neither log-start-offset-checkpoint nor leader-epoch-checkpoint" in str(finding)

    def test_a_tombstone_that_one_run_gave_a_horizon_and_the_next_removed(
        self, place: Place
    ) -> None:
        place.configure(**{"delete.retention.ms": "1000"})
        place.write("abA", "b", "c")
        place.copy()
        reports: list[object] = []
        for number, after_ms in enumerate((0, 999, 1000)):
            report = self.report(place, f"run{number}")
            time_ms = place.written_ms + after_ms
            words = ["--set", "min.cleanable.dirty.ratio=0", "--as-of", time_ms]
            if number:  # there is nothing else to clean
                self.change(place, "append", "--records", self.records(place, number))
                run_command("log", "roll", place.now, LOG_NAME, "--yes")
                place.set_times()
            ended = place.run(*words, "--report", report)
            assert ended.summary["totals"]["logs"]["cleaned"] == 1, ended.error
            reports += ["--run-report", report]
            if number < 2:
                require_sound(place.verify(*reports))
        require_sound(place.verify(*reports))
        found = findings(place.verify("--format", "json"))
        problems = " ".join(finding["problem"] for finding in found)
        assert "a tombstone before its delete horizon, is gone without a reason" in problems
        assert "the reports of two runs that went over it (--run-report)" in problems
        ended = place.verify(*reports[:4], "--format", "json")  # the checkpoint tells of the third
        [partition] = json.loads(ended.out)["partitions"]
        assert (ended.code, partition["possible_removals"]) == (0, 1)

    def records(self, place: Place, number: int) -> Path:
        path = place.now.parent / "records.jsonl"
        path.write_text(json.dumps({"key": f"new{number}", "value": "v", "timestamp": 1}) + "\n")
        return path

    def test_an_undone_run(self, place: Place, tmp_path: Path) -> None:
        """What the run had to remove is there again, as the report of undo says."""
        place.write("abab", "a")
        place.copy()
        run, undo = self.report(place, "run"), self.report(place, "undo")
        kept = tmp_path / "kept"
        kept.mkdir()
        assert place.run("--report", run, "--keep-originals", kept).code == 0
        [path] = kept.iterdir()
        assert run_command("undo", path, "--report", undo).code == 0
        require_sound(place.verify("--run-report", run, "--run-report", undo))

    def test_a_log_start_of_a_run_that_was_undone(self, place: Place, tmp_path: Path) -> None:
        """Its report explains no log start any more, nor does that of an append in between."""
        place.configure(**RETAINED)
        place.write("ab", "cd", "")
        place.copy()
        run, undo = self.report(place, "run"), self.report(place, "undo")
        kept = tmp_path / "kept"
        kept.mkdir()
        assert place.run("--report", run, "--keep-originals", kept).code == 0
        assert not (place.now / LOG_NAME / file_name(0, LOG)).exists()
        records = self.records(place, 1)
        added = self.change(place, "append", "--records", records, name="added")
        [path] = kept.iterdir()
        assert run_command("undo", path, "--report", undo).code == 0
        given: list[object] = ["--run-report", run, "--run-report", added, "--run-report", undo]
        require_sound(place.verify(*given))
        for path in (place.now / LOG_NAME).glob(f"{0:020d}.*"):
            path.unlink()
        gone, finding = findings(place.verify(*given, "--format", "json"))
        assert "records are gone from its beginning" in gone["problem"]
        assert "the log begins at offset 2, before at 0" in finding["problem"]

    def test_a_record_that_has_changed_beside_a_log_start_in_its_segment(
        self, place: Place
    ) -> None:
        """No cleaning and no retention rewrites the active segment, wherever the log begins."""
        place.write("abcd")
        place.copy()
        report = self.change(place, "delete-records", "--before", 2)
        path = place.now / LOG_NAME / file_name(0, LOG)
        require_sound(place.verify("--run-report", report))
        path.write_bytes(path.read_bytes().replace(b"d" * 20, b"x" * 20))
        problems = [each["problem"] for each in findings(place.verify("--format", "json"))]
        assert "has changed, though no cleaning changes it" in problems

    def test_records_below_a_log_start_that_rose_before_the_cleaning(self, place: Place) -> None:
        """A cleaner maps keys from the log start on: what is superseded below it may stay."""
        place.write("abab", "c", "c", "")
        place.copy()
        deleted = self.change(place, "delete-records", "--before", 3, name="deleted")
        run = self.report(place, "run")
        assert place.run("--report", run).summary["totals"]["logs"]["cleaned"] == 1
        require_sound(place.verify("--run-report", deleted, "--run-report", run))

    def test_an_appended_tombstone_that_is_gone_with_what_it_deleted(
        self, place: Place, tmp_path: Path
    ) -> None:
        """The report of the append says which key it was of: nothing else is left of it."""
        place.configure(**{"delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0"})
        place.write("ab", "c")
        place.copy()
        path = tmp_path / "records.jsonl"
        path.write_text('{"key": "a", "value": null}\n')
        given: list[object] = ["--run-report", self.change(place, "append", "--records", path)]
        for number in range(2):
            if number:
                new = self.records(place, 1)
                given += [
                    "--run-report",
                    self.change(place, "append", "--records", new, name="second"),
                ]
            run_command("log", "roll", place.now, LOG_NAME, "--yes")
            report = self.report(place, f"run{number}")
            assert place.run("--report", report).code == 0
            given += ["--run-report", report]
        require_sound(place.verify(*given))
        assert place.verify(*given[2:]).code == 4
