"""What older versions have left behind is read, or refused in words.

golden/older_files.tar.xz is what version dc500ee left of a run with kept originals over two logs,
one of them damaged, and a plan that 8c41ea5 saved, the first version that saved any.
"""

import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from compactor import api
from compactor.errors import ConfigError
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from compactor.originals.undo import UndoStatus

ARCHIVE = Path(__file__).parent.parent / "golden" / "older_files.tar.xz"
RUN_ID = "052fffdf"
RULES = api.Rules(
    settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
    include=".*",
    as_of=10**12,
    any_clock=True,
    assume_fully_replicated=True,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the run is made to have been: its files name the directory."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    for path in (tmp_path / "plan.json", *tmp_path.rglob("run.json"), *tmp_path.rglob(SET_ASIDE)):
        path.write_text(path.read_text("ascii").replace("/data/", f"{tmp_path}/"), "ascii")
    return tmp_path


def contents(partition: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in partition.iterdir()}


def digest(partition: Path) -> str:
    """As that version made it."""
    found = sorted((path.name, path.stat()) for path in partition.iterdir())
    lines = (f"{name} {s.st_size} {s.st_mtime_ns} {s.st_ino}\n" for name, s in found)
    return sha256("".join(lines).encode()).hexdigest()


def test_the_originals_of_an_older_run_are_brought_back(data: Path) -> None:
    before = contents(data / "before" / "orders-0")
    assert contents(data / "logs" / "orders-0") != before
    [undone] = api.undo(str(data / "kept" / RUN_ID))
    assert undone.status is UndoStatus.UNDONE
    assert contents(data / "logs" / "orders-0") == before


def test_what_an_older_run_set_aside_stays_so(data: Path) -> None:
    """By a digest of names, sizes, times and inodes, which an unpacked file has anew."""
    partition, memory = data / "logs" / "broken-0", data / "logs" / SET_ASIDE
    document = json.loads(memory.read_text("ascii"))
    document["logs"][0]["files"] = digest(partition)
    memory.write_text(json.dumps(document), "ascii")
    planned = api.plan([str(data / "logs")], RULES)
    [reason] = [r.reason for r in planned.round_plan.not_cleaned if r.topic == "broken"]
    assert reason is not None and planned.warnings == ()
    assert reason.startswith("set aside since 2026-11-23T08:57:43.528Z (once) and not changed")
    assert reason.endswith("byte 0: checksum ae8500a3 is stored, 39f4f762 computed")


def test_what_was_set_aside_and_has_changed_is_tried_again(data: Path) -> None:
    planned = api.plan([str(data / "logs")], RULES)
    assert [log.topic for log in planned.round_plan.logs] == ["broken"]
    assert planned.warnings == ()


def test_a_plan_of_an_older_version_is_refused_in_words(data: Path) -> None:
    path = str(data / "plan.json")
    expected = f"{path}: is a plan of version 1, made by 0.1.0; this compactor takes version 2"
    with pytest.raises(ConfigError) as raised:
        api.run([], options=api.RunOptions(plan=path))
    assert str(raised.value) == f"options.plan {expected}: plan again with it"
