"""A reboot in the middle of the swaps, which empties the tmpfs that the work directory stands in.

The next night's run needs no person, and leaves the batches of one that was never cut short.
"""

import shutil
import time
from pathlib import Path

import pytest

from compactor import api
from compactor.log_dirs.locked_log_dirs import LOCK_FILE
from storage.formats import checkpoint
from tests.scheduled.nights import Host, leftovers

NIGHT = 3


def _contents(log_dir: Path) -> dict[str, object]:
    """The batches of each log, which a second run may part into other segments; and how far each
    is cleaned."""
    logs = {
        partition.name: b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))
        for partition in log_dir.iterdir()
        if partition.is_dir()
    }
    return {**logs, "cleaned": checkpoint.read(str(log_dir / checkpoint.CLEANER_OFFSET))}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A day after the broker's first appends."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Host(tmp_path, monkeypatch)
    made.append_a_day()
    made.set_clock(24 + NIGHT)
    monkeypatch.setattr(time, "time_ns", lambda: made.now_ms * 1_000_000)  # for delete horizons
    return made


@pytest.mark.parametrize(("renames", "lock_stays"), [(0, True), (5, False), (16, True)])
def test_the_next_run_needs_no_person(host: Host, renames: int, lock_stays: bool) -> None:
    log_dir, before = host.paths.log_dir, host.paths.log_dir.with_name("before")
    shutil.copytree(log_dir, before)
    assert host.run() == 0, host.said
    undisturbed = _contents(log_dir)
    shutil.rmtree(log_dir)
    shutil.copytree(before, log_dir)
    assert _contents(log_dir) != undisturbed

    host.killed_run(renames)
    assert [path.name.split("-")[0] for path in host.paths.work_dir.iterdir()] == ["compactor"]
    shutil.rmtree(host.paths.work_dir)
    if not lock_stays:
        (log_dir / LOCK_FILE).unlink()
    assert host.run() == 0, host.said
    assert leftovers(host) == []
    assert host.paths.work_dir.is_dir()
    assert _contents(log_dir) == undisturbed
    assert api.verify(str(log_dir)).findings == []
