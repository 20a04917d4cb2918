"""A log that a run sets aside keeps every byte: nothing of it is settled before that."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.settings.sources import State
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.formats import checkpoint, clean_shutdown, meta_properties
from storage.formats.meta_properties import MetaProperties
from tests.compactor.log_checks.test_missing_offsets import ORDERS
from tests.compactor.settings.test_sources import CASES, SAYS_COMPACT, Scene, rows, run
from tests.support.local_command import run_command, use_local_rounds
from tests.support.made_log import files_of, keyed, make_partition

SETTINGS = ("--set", "cleanup.policy=compact", "--set", "min.cleanable.dirty.ratio=0")
ASKED = ("--include", "orders", "--any-clock", "--format", "json")
Harm = Callable[[Path], None]


def cut_short(partition: Path, base_offset: int = 2) -> None:
    """A complete swap: the files of a segment are yet to lose their suffix."""
    for kind in (LOG, INDEX, TIME_INDEX):
        path = partition / file_name(base_offset, kind)
        path.rename(f"{path}.swap")


@pytest.mark.parametrize(("state", "make"), CASES)
def test_whatever_the_sources_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State, make: Callable[[Path], Scene]
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    told = rows()[state.value.rule]
    for name, topics, words in (("alone", None, told.alone), ("named", SAYS_COMPACT, told.named)):
        found = make(tmp_path / name)
        log = found.data / "t-0"
        if not log.is_dir():
            continue
        cut_short(log)
        before = files_of(log)
        says = topics if found.topics is None else found.topics
        assert run(found, says).words == words
        if words.startswith("cleaned"):
            assert not [*log.glob("*.swap")]
        elif not words.startswith("passed over"):
            assert files_of(log) == before, name


def orders_in(root: Path) -> Path:
    """Segments 0, 3, 6 and 8, which is active; the second has the keys of the first."""
    segments = {0: [keyed(0, "aba")], 3: [keyed(3, "abc")], 6: [keyed(6, "ab")], 8: [keyed(8, "z")]}
    partition = make_partition(root / "logs", segments)
    checkpoint.write(str(root / "logs" / checkpoint.REPLICATION), {ORDERS: 9})
    cut_short(partition, 6)
    return partition


def without_a_segment(partition: Path) -> None:
    for path in partition.glob(f"{file_name(3, '')}*"):
        path.unlink()


def with_a_wrong_index(partition: Path) -> None:
    """Its entry leads to no batch."""
    (partition / file_name(8, INDEX)).write_bytes(bytes((0, 0, 0, 0, 0, 0, 0, 5)))


def with_a_foreign_file(partition: Path) -> None:
    (partition / "x.log").touch()


def with_a_torn_end(partition: Path) -> None:
    path = partition / file_name(8, LOG)
    path.write_bytes(path.read_bytes()[:-1])


def with_bad_checkpoint(name: str) -> Harm:
    def harm(partition: Path) -> None:
        (partition.parent / name).write_bytes(b"0\n1\n")

    return harm


def with_a_start_past_the_end(partition: Path) -> None:
    checkpoint.write(str(partition.parent / checkpoint.LOG_START), {ORDERS: 99})


def in_two_directories(partition: Path) -> None:
    make_partition(partition.parent.parent / "other", {0: [keyed(0, "a")], 1: []})
    shutil.copy(partition.parent / checkpoint.REPLICATION, partition.parent.parent / "other")


HARMS: dict[str, tuple[Harm, str]] = {
    "missing segment": (without_a_segment, "damaged"),
    "index": (with_a_wrong_index, "set-aside"),
    "foreign file": (with_a_foreign_file, "set-aside"),
    "torn end": (with_a_torn_end, "set-aside"),
    "cleaner checkpoint": (with_bad_checkpoint(checkpoint.CLEANER_OFFSET), "log-dir-damaged"),
    "log starts": (with_bad_checkpoint(checkpoint.LOG_START), "log-dir-damaged"),
    "high watermarks": (with_bad_checkpoint(checkpoint.REPLICATION), "log-dir-damaged"),
    "log start past the end": (with_a_start_past_the_end, "damaged"),
    "in two directories": (in_two_directories, "in-two-log-dirs"),
}
LAGS = ("--set", "min.compaction.lag.ms=1")


@pytest.mark.parametrize("harm", HARMS)
def test_whatever_the_files_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    """What `plan` and `doctor` say of a run that settles first, too."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    partition = orders_in(tmp_path)
    change, code = HARMS[harm]
    change(partition)
    before = files_of(partition)
    log_dirs = [*tmp_path.glob("other"), tmp_path / "logs"]
    words = (*log_dirs, *SETTINGS, *LAGS, *ASKED)
    foreseen = run_command("plan", *words).summary["run_would_end"]
    ended = run_command("run", *words)
    assert (foreseen["exit_code"], ended.code) == (4, 4)
    assert [log["reason_code"] for log in ended.summary["logs"]][-1] == code
    assert files_of(partition) == before


def test_what_is_sound_is_settled_and_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    partition = orders_in(tmp_path)
    ended = run_command("run", tmp_path / "logs", *SETTINGS, *LAGS, *ASKED)
    assert [log["status"] for log in ended.summary["logs"]] == ["cleaned"]
    assert not [*partition.glob("*.swap")]


@pytest.mark.parametrize("is_set_aside", [True, False])
def test_nor_is_it_recovered_before_it_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set_aside: bool
) -> None:
    """--recover-first after an unclean shutdown: the torn end stays with the log."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    partition = orders_in(tmp_path)
    os.unlink(tmp_path / "logs" / clean_shutdown.CLEAN_SHUTDOWN)
    with_a_torn_end(partition)
    checkpoint.write(str(tmp_path / "logs" / checkpoint.RECOVERY_POINT), {ORDERS: 8})
    checkpoint.write(str(tmp_path / "logs" / checkpoint.REPLICATION), {ORDERS: 8})
    if is_set_aside:
        without_a_segment(partition)
    before = files_of(partition)
    ended = run_command("run", tmp_path / "logs", *SETTINGS, *LAGS, *ASKED, "--recover-first")
    assert ended.code == (4 if is_set_aside else 0)
    assert (files_of(partition) == before) is is_set_aside


def without_log_files(root: Path) -> Path:
    partition = orders_in(root)
    for path in {*partition.glob("*.log"), *partition.glob("*.swap")}:
        path.unlink()
    meta_properties.write(str(root / "logs"), MetaProperties(1, "c", 1, None))
    return partition


@pytest.mark.parametrize("name", [checkpoint.REPLICATION, checkpoint.RECOVERY_POINT])
@pytest.mark.parametrize("command", ["recover", "run", "verify", "plan", "doctor"])
@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_log_without_log_files_stays_where_a_checkpoint_cannot_be_read(
    tmp_path: Path, name: str, command: str, policy: str
) -> None:
    """Whether it had records is not known: its indexes and snapshots are the last trace of them."""
    partition = without_log_files(tmp_path)
    checkpoint.write(str(partition.parent / checkpoint.REPLICATION), {})
    (partition.parent / name).write_bytes(b"0\n1\n")
    before = files_of(partition)
    words: tuple[str, ...] = ()
    if command not in ("verify", "doctor"):
        words = ("--set", f"cleanup.policy={policy}")
    if command in ("run", "plan"):
        words += ("--include", "orders", "--any-clock")
    ended = run_command(command, partition.parent, *words)
    shown = " ".join((ended.out + ended.error).split())
    assert "whether it had records is not known" in shown
    assert ended.code == 4
    assert files_of(partition) == before


@pytest.mark.parametrize("name", [checkpoint.CLEANER_OFFSET, checkpoint.LOG_START])
def test_a_file_that_may_fill_a_gap_stays_where_the_dirty_range_is_not_known(
    tmp_path: Path, name: str
) -> None:
    partition = orders_in(tmp_path)
    for path in list(partition.glob(f"{file_name(3, '')}*")):
        path.rename(f"{path}.deleted")
    for path in list(partition.glob("*.swap")):
        path.rename(str(path).removesuffix(".swap"))
    (partition.parent / name).write_bytes(b"0\n1\n")
    before = files_of(partition)
    ended = run_command("recover", partition.parent)
    assert ended.code == 4
    assert name in ended.out
    assert files_of(partition) == before
