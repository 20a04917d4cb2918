"""A record that a command of ours wrote does not show that the metadata log is an old copy."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor import api
from compactor.settings import own_writes
from compactor.settings.own_writes import OWN_WRITES
from compactor.settings.sources import LOG_LAG_MS
from storage.files.local import LOCAL
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from tests.compactor.settings.test_sources import OTHER, TIME_MS, Scene, identify, run, scene

pytestmark = pytest.mark.usefixtures("without_spark")

LATER_MS = TIME_MS + LOG_LAG_MS + 60_000
CLEANED, NOTHING_NEW = ("cleaned", 0), ("passed over: `nothing-new`", 0)
OLD_COPY = ("set aside: `metadata-contradicted`", 4)


def by_command(log: Path) -> None:
    """Days after the stop, by the machine's clock."""
    records = [api.NewRecord(b"a", None)]
    options = api.ChangeOptions(only_replica=True)
    assert api.log_append(str(log.parent), log.name, records, "none", options).is_changed


def by_broker(log: Path) -> None:
    """Of a later time, as by a broker whose metadata log went on."""
    path = max(log.glob("*.log"))
    next_offset = api.log_offsets(str(log.parent), log.name).log_end
    with path.open("ab") as file:
        file.write(encode_batch([Record(next_offset, LATER_MS, b"a", b"2")]))
    os.utime(path, (LATER_MS / 1000, LATER_MS / 1000))


def roll(log: Path) -> None:
    api.log_roll(str(log.parent), log.name)


def clean(log: Path) -> None:
    assert run(Scene(log.parent), None) == CLEANED


def damage_note(log: Path) -> None:
    path = log.parent / OWN_WRITES
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("acts", "then"),
    [
        ([by_command], CLEANED),
        ([by_command, by_command], CLEANED),
        ([by_command, roll, by_command], CLEANED),
        ([by_command, roll, clean], NOTHING_NEW),
        ([by_command, roll, clean, by_command], NOTHING_NEW),
        ([by_command, by_broker], OLD_COPY),
        ([by_broker, by_command], OLD_COPY),
        ([by_command, by_broker, by_command], OLD_COPY),
        ([by_command, damage_note], OLD_COPY),
        ([by_command, damage_note, by_command], OLD_COPY),
    ],
    ids=lambda value: "-".join(each.__name__ for each in value) if type(value) is list else "",
)
def test_only_records_of_others_show_that_the_metadata_log_is_old(
    tmp_path: Path, acts: list[Callable[[Path], None]], then: tuple[str, int]
) -> None:
    """S-2.10."""
    found = scene(tmp_path)
    for act in acts:
        act(found.data / "t-0")
    assert run(found, None, "--dry-run") == then


def test_a_change_that_appends_nothing_leaves_no_note(tmp_path: Path) -> None:
    found = scene(tmp_path)
    roll(found.data / "t-0")
    assert not (found.data / OWN_WRITES).exists()


def test_the_note_goes_along_when_the_log_is_moved(tmp_path: Path) -> None:
    found = scene(tmp_path)
    by_command(found.data / "t-0")
    noted = own_writes.read(str(found.data), LOCAL)
    target = tmp_path / "second"
    target.mkdir()
    identify(target, directory=OTHER)
    api.log_move(str(found.data), "t-0", str(target))
    assert noted and own_writes.read(str(target), LOCAL) == noted
    (path,) = sorted((target / "t-0").glob("*.log"))[-1:]
    assert noted["t", 0].log_ms == path.stat().st_mtime_ns // 1_000_000
