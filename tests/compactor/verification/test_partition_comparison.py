"""Each engine compares partitions as this process does: same findings, same counts, same order."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.tasks.mapping import MapContext
from compactor import api
from compactor.jobs import mapping
from compactor.verification import partition_comparison, verify_against
from compactor.verification.verify_against import PartitionComparison
from storage.file_names import TXN_INDEX, file_name
from storage.formats import checkpoint
from tests.compactor.verification.test_verify_against import (
    ABORTED_TXN,
    AT_NOW,
    CLEANED_TO,
    END,
    Pair,
    after,
    write_sides,
)
from tests.support.made_log import log_of, write_segment

NAMES = ("orders-0", "orders-1", "orders-2", "orders-3")
DAMAGED, LOSSY, UNTOUCHED = NAMES[1:]
MARK = "TEST_COMPARISON_MARK"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """One partition is as it should be, the others are what their names say."""
    pair = write_sides(tmp_path, after())
    for side in (pair.old, pair.new):
        for name in NAMES[1:]:
            shutil.copytree(side / NAMES[0], side / name)
        for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
            checkpoint.write(str(side / name), {("orders", number): END for number in range(4)})
    cleaned = {("orders", number): CLEANED_TO for number in range(3)}
    checkpoint.write(str(pair.new / checkpoint.CLEANER_OFFSET), cleaned)
    log = log_of(pair.new / DAMAGED, 0)
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    batches = after()
    del batches["committed"]
    write_segment(pair.new / LOSSY, 0, list(batches.values()))
    shutil.rmtree(pair.new / UNTOUCHED)
    shutil.copytree(pair.old / UNTOUCHED, pair.new / UNTOUCHED)
    return pair


def compared(pair: Pair, options: api.TaskOptions) -> api.Comparison:
    return api.verify_against(pair.new, pair.old, clock=AT_NOW, options=options)


@pytest.fixture
def expected(pair: Pair) -> api.Comparison:
    """What this process finds, held against what was done to the partitions."""
    found = compared(pair, api.TaskOptions(in_process=True))
    assert (found.untouched, found.linked, found.unmatched) == (1, 0, ())
    assert [each.name for each in found.partitions] == [NAMES[0], LOSSY]
    assert found.partitions[0].gone["superseded"] == 3
    places = [Path(each.path).relative_to(pair.new.parent).parts[1] for each in found.findings]
    assert places[0] == DAMAGED and {*places[1:]} == {LOSSY}
    damage, *lost = (finding.problem for finding in found.findings)
    assert damage.endswith("from here on, nothing of this partition was compared")
    assert any("offset 8: the latest record of its key is gone" in problem for problem in lost)
    return found


@pytest.mark.parametrize("count", [1, 2, 4])
def test_processes_find_what_this_process_finds(
    pair: Pair, expected: api.Comparison, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "TASK_BYTES", 1)
    with api.Workers(count) as workers:
        assert compared(pair, api.TaskOptions(workers=workers)) == expected


@pytest.mark.spark
def test_spark_finds_what_this_process_finds(pair: Pair, expected: api.Comparison) -> None:
    assert compared(pair, api.TaskOptions(master="local[2]")) == expected


def test_the_key_of_hashes_is_another_for_each_partition() -> None:
    drawn = {partition_comparison._new_secret() for _ in range(100)}
    assert len(drawn) == 100


def test_of_a_copy_by_hard_links_only_what_was_cleaned_counts_as_read(tmp_path: Path) -> None:
    pair = write_sides(tmp_path, after())
    (pair.new / "orders-1").mkdir()
    (pair.old / "orders-1").mkdir()
    for path in (pair.old / "orders-0").iterdir():
        shutil.copy(path, pair.old / "orders-1")
        (pair.new / "orders-1" / path.name).hardlink_to(pair.old / "orders-1" / path.name)
    assert (pair.old / "orders-1" / file_name(0, TXN_INDEX)).read_bytes() == ABORTED_TXN
    seen: list[int] = []

    def look(_: object, wanted: list[mapping.MappedLog]) -> bool:
        seen.extend(each.log_bytes for each in wanted)
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "is_done_here", look)
        found = compared(pair, api.TaskOptions())
    logs = [path for side in (pair.old, pair.new) for path in (side / "orders-0").glob("*.log")]
    assert seen == [sum(path.stat().st_size for path in logs), 0]
    assert (found.untouched, found.linked) == (1, 1)


def test_a_worker_that_dies_while_it_compares_changes_no_finding(
    pair: Pair, expected: api.Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call of all ends its process."""
    monkeypatch.setattr(mapping, "TASK_BYTES", 1)
    monkeypatch.setattr(verify_against, "COMPARE", f"{__name__}:compare_or_die")
    monkeypatch.setenv(MARK, str(tmp_path / "mark"))
    said: list[str] = []
    with api.Workers(2) as workers:
        found = api.verify_against(
            pair.new,
            pair.old,
            clock=AT_NOW,
            on_progress=lambda progress: said.append(progress.message),
            options=api.TaskOptions(workers=workers),
        )
    assert found == expected
    assert [line for line in said if "SIGKILL" in line] == [
        "map: a worker process was ended by SIGKILL. Its task is tried again"
    ]


def compare_or_die(value: Any, context: MapContext) -> PartitionComparison:
    with suppress(FileExistsError):
        Path(os.environ[MARK]).touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    return partition_comparison.compare_partition(value, context)
