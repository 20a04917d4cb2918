"""Disks that are too small: a tmpfs of its own, on which the kernel itself has no more room.

What does not fit leaves its log as it was and frees what it had taken; the other logs go on.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.private_mounts import python_with_mounts

# Runs as another process, with the small disk at `disk`: a log of 400 records of a kilobyte and few
# keys, and a small one. `fill` leaves so many pages free.
PRELUDE = """
import json, os, sys
from pathlib import Path
import pytest
from compactor.planning import layout
from compactor.outcome.round_report import LogStatus
from storage.formats import checkpoint
from tests.support.local_round import open_local_round
from tests.support.made_log import batch, files_of, keyed, make_partition, plan_of, record, round_of

disk, elsewhere = Path(sys.argv[1]), Path(sys.argv[2])
logs = disk / "logs"
patches = pytest.MonkeyPatch()
local = open_local_round(elsewhere, patches)

def large_log(name="large-0", keys=200):
    batches = [
        batch(*(record(i, b"%d" % (i % keys), b"v" * 1000) for i in range(first, first + 20)))
        for first in range(0, 400, 20)
    ]
    return make_partition(logs, {0: batches, 400: [keyed(400, "a")]}, name)

def small_log(name="small-0"):
    return make_partition(logs, {0: [keyed(0, "ab"), keyed(2, "ab")], 4: [keyed(4, "a")]}, name)

def free():
    found = os.statvfs(disk)
    return found.f_bavail, found.f_favail

def fill(pages):
    with open(disk / "ballast", "wb", buffering=0) as out:
        while free()[0] > pages:
            out.write(bytes(4096))

def told(reports):
    return [(log.topic, log.status.value, log.reason) for log in reports]
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def on_small_disk(disk: Path, code: str, options: str = "size=4m") -> Any:
    """What the code prints as JSON."""
    elsewhere = disk.parent / "elsewhere"
    elsewhere.mkdir()
    mounts = [f"-t tmpfs -o {options} none {disk}"]
    done: subprocess.CompletedProcess[str] = python_with_mounts(
        mounts, PRELUDE + code, disk, elsewhere
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


FAILS = """
large, small = large_log(), small_log()
before = files_of(large)
local.before["rewrite"] = lambda: fill({pages})
plan = round_of(plan_of(large, [[0]], 400), plan_of(small, [[0]], 4, log_id=1))
reports = local.run(plan).logs
(disk / "ballast").unlink()
same = files_of(large) == before
entries = checkpoint.read(str(logs / checkpoint.CLEANER_OFFSET))
names = [name for log in (large, small) for name in os.listdir(log) if "compactor" in name]
again = local.run(round_of(plan_of(large, [[0]], 400))).logs if {again} else ()
print(json.dumps([told(reports), same, sorted(k[0] for k in entries), names, told(again)]))
"""


@pytest.mark.parametrize("joined", [False, True])
def test_what_does_not_fit_is_left_as_it_was_and_the_other_log_goes_on(
    disk: Path, joined: bool
) -> None:
    """200 kB are to be staged, and there are 20 pages; joined: of pieces on another disk."""
    several = "layout.STRETCH_BYTES = layout.LOG_COST_BYTES = 1\nlocal.cores = 4\n"
    code = (several if joined else "") + FAILS.replace("{pages}", "20").replace(
        "{again}", "local.before.clear() is None"
    )
    told, same, entries, left, again = on_small_disk(disk, code)
    (large, small) = told
    assert large[:2] == ["large", "failed"] and large[2].endswith("No space left on device")
    assert f"{disk}/logs/large-0/" in large[2]
    assert small == ["small", "cleaned", None]
    assert same and entries == ["small"] and left == []
    assert again == [["large", "cleaned", None]]


def test_without_room_for_another_file_likewise(disk: Path) -> None:
    """Inodes: for the three files of one log, not for those of two."""
    code = """
large, small = large_log(), small_log()
before = files_of(large)
def use_up():
    number = 0
    while free()[1] > 2:
        (disk / f"file-{number}").touch()
        number += 1
local.before["rewrite"] = use_up
reports = local.run(round_of(plan_of(large, [[0]], 400))).logs
names = [name for name in os.listdir(large) if "compactor" in name]
print(json.dumps([told(reports), files_of(large) == before, names, free()[1]]))
"""
    told, same, left, free_files = on_small_disk(disk, code, "size=4m,nr_inodes=60")
    assert told[0][1] == "failed" and told[0][2].endswith("No space left on device")
    assert same and left == [] and free_files == 2


def test_a_checkpoint_that_does_not_fit_fails_its_logs_which_stay_cleaned(disk: Path) -> None:
    code = """
large = large_log()
path = logs / checkpoint.CLEANER_OFFSET
checkpoint.write(str(path), {("large", 0): 0})
before = path.read_bytes()
write = checkpoint.write
def full(*arguments):
    fill(0)
    write(*arguments)
patches.setattr(checkpoint, "write", full)
reports = local.run(round_of(plan_of(large, [[0]], 400))).logs
(disk / "ballast").unlink()
patches.setattr(checkpoint, "write", write)
same = path.read_bytes() == before
again = local.run(round_of(plan_of(large, [[0]], 400))).logs
names = sorted(path.name for path in logs.iterdir())
print(json.dumps([told(reports), same, names, told(again), checkpoint.read(str(path))["large", 0]]))
"""
    told, same, names, again, offset = on_small_disk(disk, code)
    path = disk / "logs" / "cleaner-offset-checkpoint"
    reason = f"cleaned, but the cleaner checkpoint was not written: {path}.tmp: "
    assert told == [["large", "failed", f"{reason}No space left on device"]]
    assert same and names == [".kafka_cleanshutdown", path.name, "large-0"]
    assert again == [["large", "cleaned", None]] and offset == 400


def test_a_report_that_does_not_fit_is_an_error_and_leaves_nothing(disk: Path) -> None:
    code = """
import contextlib, io
from compactor.command_line import cli
large_log()
fill(0)
error = io.StringIO()
with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
    code = cli.main(["plan", str(logs), "--report", str(disk / "report.json")])
print(json.dumps([code, error.getvalue(), sorted(os.listdir(disk))]))
"""
    code, error, names = on_small_disk(disk, code)
    assert code == 1 and "No space left on device. The report " in error
    assert names == ["ballast", "logs"]


# what is seen before any work


CHECKED = """
from compactor.settings.config import load_config
from compactor.errors import RefusedError
from compactor.planning.space import space_of, with_room
from tests.compactor.plan_logs import plan_log_dirs
large_log("a-0", keys=390), small_log("b-0"), large_log("c-0")
ends = {("a", 0): 401, ("b", 0): 5, ("c", 0): 401}
checkpoint.write(str(logs / checkpoint.REPLICATION), ends)
config = load_config(settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
before = {name: files_of(logs / name) for name in ("a-0", "b-0", "c-0")}
fill(PAGES)
plan = plan_log_dirs([str(logs)], config, 10_000)
assert len(plan.logs) == 3, plan.not_cleaned
try:
    with_space = with_room(plan, space_of(plan.logs, str(elsewhere), None, "local[1]"))
except RefusedError as error:
    print(json.dumps(str(error)))
    sys.exit()
reports = local.run(with_space).logs
same = [name for name in before if files_of(logs / name) == before[name]]
print(json.dumps([sorted(told(reports)), same]))
"""


def test_logs_that_there_is_no_room_for_are_left_out_before_any_work(disk: Path) -> None:
    """Each large log has 410 kB, and an eighth; 500 kB are free: for one of them, and the small."""
    told, same = on_small_disk(disk, CHECKED.replace("PAGES", "125"))
    statuses = {topic: status for topic, status, _ in told}
    assert sorted(statuses.values()) == ["cleaned", "cleaned", "failed"]
    assert statuses["b"] == "cleaned"
    [(left_out, reason)] = [(topic, why) for topic, status, why in told if status == "failed"]
    assert reason.startswith("no room: up to ") and f"needed at {disk}/logs, " in reason
    assert same == [f"{left_out}-0"]


def test_if_there_is_room_for_none_the_run_is_refused(disk: Path) -> None:
    reason = on_small_disk(disk, CHECKED.replace("PAGES", "1"))
    assert reason.startswith("no room: up to ") and reason.endswith("4.1 kB are free")


def test_the_command_refuses_with_its_exit_code_and_changes_nothing(disk: Path) -> None:
    code = """
import contextlib, io
from compactor.command_line import cli
large = large_log()
checkpoint.write(str(logs / checkpoint.REPLICATION), {("large", 0): 401})
before = files_of(large)
fill(2)
out, error = io.StringIO(), io.StringIO()
words = [str(logs), "--include", ".*", "--set", "cleanup.policy=compact"]
words += ["--set", "min.cleanable.dirty.ratio=0"]
with contextlib.redirect_stderr(error), contextlib.redirect_stdout(out):
    plan = cli.main(["plan", *words, "--format", "json"])
    code = cli.main(["run", *words, "--work-dir", str(elsewhere)])
lines = out.getvalue().splitlines()
same = files_of(large) == before
told = json.loads(lines[0])
print(json.dumps([plan, told["space"], told["refusals"], code, error.getvalue(), same]))
"""
    plan, space, refusals, code, error, same = on_small_disk(disk, code)
    assert (plan, code, same) == (0, 3, True)
    assert "compactor: no room: up to " in error and "Nothing was changed" in error
    assert f"compactor: {refusals[0]}. Nothing was changed." in error
    [left_out] = space["left_out"]
    assert (left_out["topic"], left_out["partition"]) == ("large", 0)
