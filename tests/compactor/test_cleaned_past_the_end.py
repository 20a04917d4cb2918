"""No command leaves a log that ends below what its cleaner's checkpoint says, so that what is
appended later would count as clean: a value that a tombstone among it deletes would come back."""

from pathlib import Path

import pytest

from compactor import api
from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir
from compactor.settings.config import load_config
from storage.file_names import LOG, file_name
from storage.formats import checkpoint, clean_shutdown
from tests.compactor.offline_log.made_logs import CLOCK_MS, LOG_END, make
from tests.support.files.cuts import cuts
from tests.support.files.memory import in_memory
from tests.support.local_command import run_command, use_local_rounds
from tests.support.made_log import files_of

NAME, KEY, OTHER = "orders-0", ("orders", 0), ("prices", 1)
ACTIVE = file_name(8, LOG)  # holds offsets 8 and 9, a batch each
LOG_COMMANDS = {
    "roll": (),
    "truncate": ("--to", "8", "--only-replica"),
    "delete-records": ("--before", "4", "--only-replica"),
    "append": ("--records", "{records}", "--only-replica"),
    "abort": ("--producer-id", "8", "--only-replica"),
}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "records").write_text('{"key": "YQ==", "value": "YQ=="}\n')
    return make(tmp_path / "log")


def note(made: Path, cleaned_to: int) -> None:
    entries = {KEY: cleaned_to, OTHER: 99}
    checkpoint.write(str(made / checkpoint.CLEANER_OFFSET), entries)


def noted(made: Path) -> dict[tuple[str, int], int]:
    return checkpoint.read(str(made / checkpoint.CLEANER_OFFSET))


def tear(made: Path, is_clean: bool = False) -> None:
    """Cut the last batch in two; a recovery leaves offset 8."""
    path = made / NAME / ACTIVE
    path.write_bytes(path.read_bytes()[:-5])
    checkpoint.write(str(made / checkpoint.RECOVERY_POINT), {KEY: 8})
    if not is_clean:
        (made / clean_shutdown.CLEAN_SHUTDOWN).unlink()


def log_command(made: Path, command: str, *more: str) -> None:
    places = {"records": str(made.parent / "records")}
    words = [word.format_map(places) for word in (*LOG_COMMANDS[command], *more, "--yes")]
    policy = ("--set", "cleanup.policy=compact,delete")
    ended = run_command("log", command, made, NAME, *words, *policy)
    assert ended.code == 0, ended.error


@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_a_log_command_lowers_an_entry_that_a_broker_left_above_the_end(
    made: Path, command: str
) -> None:
    """C-4.1: to the log start offset, as for Kafka's cleaner. Other entries stay."""
    note(made, LOG_END + 1)
    log_command(made, command)
    assert noted(made) == {KEY: 0, OTHER: 99}


@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_an_entry_within_the_log_stays(made: Path, command: str) -> None:
    note(made, 8)
    log_command(made, command)
    assert noted(made) == {KEY: 8, OTHER: 99}


@pytest.mark.parametrize("command", ["roll", "append"])
def test_a_log_command_that_recovers_first_lowers_it(made: Path, command: str) -> None:
    tear(made)
    note(made, LOG_END)
    log_command(made, command, "--recover-first")
    assert noted(made) == {KEY: 0, OTHER: 99}


@pytest.mark.parametrize("as_kafka", [False, True])
@pytest.mark.parametrize(("cleaned_to", "then"), [(LOG_END, 0), (9, 9), (8, 8)])
def test_a_recovery_lowers_it(made: Path, as_kafka: bool, cleaned_to: int, then: int) -> None:
    tear(made)
    note(made, cleaned_to)
    [recovered] = api.recover([str(made)], as_kafka=as_kafka)
    assert noted(made) == {KEY: then, OTHER: 99}
    [log] = recovered.logs
    assert (checkpoint.CLEANER_OFFSET in log.rebuilt) == (then != cleaned_to)


def test_a_run_that_recovers_first_lowers_it(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_local_rounds(monkeypatch, tmp_path)
    tear(made)
    note(made, LOG_END)
    policy = ("--set", "cleanup.policy=compact", "--set", "min.compaction.lag.ms=1000000000000")
    ended = run_command("run", made, "--recover-first", "--include", "orders", *policy)
    assert noted(made)[KEY] == 0, ended


def test_a_broker_that_takes_it_for_clean_does_not_hide_it_from_kafkas_loader(made: Path) -> None:
    """A shutdown that counts as clean: only Kafka's loader cuts there, for want of an index."""
    tear(made, is_clean=True)
    (made / NAME / ACTIVE.replace(LOG, ".index")).unlink()
    note(made, LOG_END)
    # 4: after a shutdown that counts as clean, what was cut off is records that are gone
    assert run_command("recover", made, "--as-kafka").code == 4
    assert noted(made) == {KEY: 0, OTHER: 99}


def test_killed_or_without_power_at_any_change_it_is_lowered_before_the_log_is_cut(
    made: Path,
) -> None:
    rules = LoadRules(load_config(), CLOCK_MS)
    tear(made)
    note(made, LOG_END)
    path, entries = made / NAME / ACTIVE, str(made / checkpoint.CLEANER_OFFSET)
    torn, seen = path.stat().st_size, set()
    for left, _ in cuts(
        in_memory(made), lambda files: recover_log_dir(str(made), rules, files=files)
    ):
        is_cut = len(left.read_bytes(str(path))) < torn
        seen.add((is_cut, checkpoint.read(entries, left)[KEY]))
    assert seen == {(False, LOG_END), (False, 0), (True, 0)}


def test_an_empty_checkpoint_keeps_no_log_from_its_recovery(made: Path) -> None:
    """It says nothing of any log (F-13.4)."""
    tear(made)
    (made / checkpoint.CLEANER_OFFSET).write_bytes(b"")
    [recovered] = api.recover([str(made)])
    assert [log.problem for log in recovered.logs] == [None]
    assert (made / checkpoint.CLEANER_OFFSET).read_bytes() == b""


@pytest.mark.parametrize("data", [b"0\n1\n", b"\xff"])
@pytest.mark.parametrize("option", [(), ("--as-kafka",)], ids=("", "as-kafka"))
def test_no_log_is_cut_where_nobody_knows_how_far_it_was_cleaned(
    made: Path, data: bytes, option: tuple[str, ...]
) -> None:
    """Once the checkpoint is brought back, its entry may lie above the new end. Only what is cut is
    set aside; emptied, as the message says, it is in nobody's way."""
    tear(made)
    (made / checkpoint.CLEANER_OFFSET).write_bytes(data)
    before = files_of(made / NAME)
    found = run_command("recover", made, *option)
    assert found.code == 4
    assert "how far the log was cleaned is not known" in " ".join(found.out.split())
    assert files_of(made / NAME) == before
    assert (made / checkpoint.CLEANER_OFFSET).read_bytes() == data
    (made / checkpoint.CLEANER_OFFSET).write_bytes(b"")
    assert run_command("recover", made, *option).code == 0
