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

from compactor.host.clock import now_ms
from storage.file_names import LOG, file_name
from storage.formats import checkpoint, clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log import Log, LogOptions
from storage.log.engine.scheduler import ManualScheduler
from tests.histories.cuts import Cuts, Limits
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.log_builder import Batch, Message, append

LOG_NAME = "t-0"
DAY_MS = 86_400_000
SMALL_GROUPS = {"segment.bytes": "200", "min.cleanable.dirty.ratio": "0"}


class Place:
    """A log directory with one log, its copy from before, and the settings of its topic."""

    def __init__(self, root: Path, **settings: str) -> None:
        self.now, self.before = root / "now", root / "before"
        root.mkdir(exist_ok=True)
        self._settings = root / "topics.json"
        self._settings.write_text(json.dumps({"t": {"cleanup.policy": "compact", **settings}}))
        self.written_ms = now_ms() - DAY_MS

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
        for segment in path.glob(f"*{LOG}"):
            os.utime(segment, (clock / 1000, clock / 1000))
        for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
            checkpoint.write(str(self.now / name), {("t", 0): self.end})
        (self.now / clean_shutdown.CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":-1}')

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


def test_a_rolled_log_is_whole(place: Place) -> None:
    place.write("abABab")
    place.copy()
    assert run_command("log", "roll", place.now, LOG_NAME, "--yes").code == 0
    require_sound(place.verify())


def test_a_log_is_whole_that_was_rolled_and_then_cleaned(place: Place) -> None:
    place.write("ababab")
    place.copy()
    run_command("log", "roll", place.now, LOG_NAME, "--yes")
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
    assert moments == {1, 2}


@pytest.mark.parametrize("segments", [("abab", "ab"), ("abab", "a", "")])
def test_a_log_that_retention_has_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments: tuple[str, ...]
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    policy = {"cleanup.policy": "compact,delete", "retention.ms": "1000"}
    place = Place(tmp_path, **policy)
    place.write(*segments)
    place.copy()
    assert place.run().code == 0
    assert not any(p.stat().st_size for p in (place.now / LOG_NAME).glob(f"*{LOG}"))
    ended = place.verify()
    require_sound(ended)
    assert ended.summary["against"]["gone"]["below_log_start"] > 0
