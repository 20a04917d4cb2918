"""The comparison finds nothing in Kafka's own outcome, and something in any other."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.fleet import Fleet
from tests.golden import corpora
from tests.oracle import compare

PARTITION = "c15.2-snapshots-of-merged-bases-0"
LOG = "00000000000000000000.log"


@pytest.fixture
def actual(tmp_path: Path) -> Path:
    """What an exact twin of Kafka's cleaner would have left."""
    target = tmp_path / PARTITION
    shutil.copytree(corpora.extracted().after / PARTITION, target)
    return target


def found(actual: Path) -> list[str]:
    fleet = corpora.extracted()
    return list(compare.differences(fleet.before / PARTITION, fleet.after / PARTITION, actual))


def test_kafkas_outcome_is_as_kafka_leaves_it(actual: Path) -> None:
    assert found(actual) == []


def test_every_log_of_kafkas_is_as_kafka_leaves_it(tmp_path: Path) -> None:
    """But for the snapshots: Kafka writes them anew when it opens a log without an index."""
    fleet = corpora.extracted()
    for name, kafkas in fleet.kafkas().items():
        if kafkas == "failed":
            continue
        before, after, twin = fleet.before / name, fleet.after / name, tmp_path / name
        shutil.copytree(after, twin)
        for snapshot in before.glob("*.snapshot"):
            if (twin / snapshot.name).exists():
                shutil.copy2(snapshot, twin)
        assert list(compare.differences(before, after, twin)) == []


def _flip_last_byte(path: Path) -> None:
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _a_millisecond_later(path: Path) -> None:
    mtime_ns = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(mtime_ns, mtime_ns))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a record": (lambda d: _flip_last_byte(d / LOG), f"{LOG}: differs from byte 148 on"),
    "a time": (lambda d: _a_millisecond_later(d / LOG), f"{LOG}: modified at"),
    "an index": (lambda d: (d / LOG).with_suffix(".index").unlink(), "index: missing"),
    "a longer index": (lambda d: (d / LOG).with_suffix(".index").write_bytes(b"x"), "from byte 0"),
    "a leftover": (lambda d: (d / f"{LOG}.cleaned").touch(), "cleaned: should not be there"),
    "a segment": (lambda d: (d / "00000000000000000002.log").touch(), "2.log: should not be there"),
    "an old snapshot": (
        lambda d: (d / "00000000000000000002.snapshot").touch(),
        "2.snapshot: should not be there",
    ),
    "a lost snapshot": (
        lambda d: (d / "00000000000000000013.snapshot").unlink(),
        "13.snapshot: missing",
    ),
    "an epoch file": (lambda d: _flip_last_byte(d / "leader-epoch-checkpoint"), "differs"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_difference_is_found(actual: Path, damage: str) -> None:
    inflict, expected = DAMAGES[damage]
    inflict(actual)
    problems = found(actual)
    assert len(problems) == 1
    assert expected in problems[0]


def test_snapshots_that_only_loading_wrote_are_not_asked_for(actual: Path, tmp_path: Path) -> None:
    fleet = corpora.extracted()
    after = tmp_path / "after"
    shutil.copytree(actual, after)
    (after / "00000000000000000099.snapshot").touch()
    assert list(compare.differences(fleet.before / PARTITION, after, actual)) == []


def test_where_retention_took_segments_epochs_and_log_start_are_kafkas(tmp_path: Path) -> None:
    """Segments 0 and 5; Kafka's retention takes the first. Seed 1447581382, third round."""
    before, after, ours = (tmp_path / name for name in ("before", "after", "ours"))
    for root, bases, epochs, start in ((before, (0, 5), "0 0", 0), (after, (5,), "0 5", 5)):
        (root / "t-0").mkdir(parents=True)
        for base in bases:
            (root / "t-0" / f"{base:020}.log").touch()
        (root / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n{epochs}\n")
        (root / compare.LOG_START_CHECKPOINT).write_text(f"0\n2\nt 0 {start}\nu 0 7\n")
    shutil.copytree(after, ours)
    assert list(compare.differences(before / "t-0", after / "t-0", ours / "t-0")) == []
    assert list(compare.log_dir_differences(before, after, ours)) == []
    for name in ("t-0/leader-epoch-checkpoint", compare.LOG_START_CHECKPOINT):
        shutil.copy(before / name, ours / name)
    assert len(list(compare.differences(before / "t-0", after / "t-0", ours / "t-0"))) == 1
    assert len(list(compare.log_dir_differences(before, after, ours))) == 1


@pytest.fixture
def few(tmp_path: Path) -> Fleet:
    """Some logs of the corpora, as a fleet of their own."""
    whole, names = corpora.extracted(), [PARTITION, "c9.6-sums-490-0", "e61-nothing-dirty-0"]
    for folder in (whole.before, whole.after):
        shutil.copytree(folder, tmp_path / folder.name, ignore=_all_partitions_but(names))
    results = {name: {"cleaned": name != names[-1]} for name in names}
    (tmp_path / "fleet.json").write_text(json.dumps({"now_ms": 0, "results": results}))
    return Fleet(tmp_path)


def _all_partitions_but(kept: list[str]) -> Callable[[str, list[str]], list[str]]:
    return lambda _, names: [n for n in names if n in corpora.partitions() and n not in kept]


def test_a_round_that_does_nothing_is_noticed(few: Fleet) -> None:
    problems, checked = few.check(lambda *_: None, few.root / "actual")
    assert problems == []
    assert [log.partition for log in checked if not log.problems] == ["e61-nothing-dirty-0"]
    assert all(log.untouched for log in checked)


def test_a_wrong_checkpoint_entry_is_noticed(few: Fleet) -> None:
    def clean(log_dir: Path, _configs: Path, _now_ms: int) -> None:
        shutil.rmtree(log_dir)
        shutil.copytree(few.after, log_dir)
        path = log_dir / compare.CLEANER_CHECKPOINT
        path.write_text(path.read_text().replace("\nc9.6-sums-490 0 7\n", "\nc9.6-sums-490 0 6\n"))

    _, checked = few.check(clean, few.root / "actual")
    wrong = {v.partition: list(v.problems) for v in checked if v.problems}
    assert wrong == {"c9.6-sums-490-0": ["cleaner-offset-checkpoint: 7 expected, 6 found"]}


def test_the_latest_values_are_those_of_committed_records() -> None:
    """By hand: producer 7 aborts, commits, and has a transaction open; 8 writes without one."""
    told: list[tuple[int, bool, str, str | None]] = [  # producer, transactional, key, value
        (7, True, "aa", "01"),
        (8, False, "bb", "02"),
        (7, True, "", "abort"),
        (7, True, "aa", "03"),
        (7, True, "", "commit"),
        (8, False, "aa", "04"),
        (8, False, "cc", "05"),
        (7, True, "aa", "06"),
        (7, True, "bb", "07"),
        (7, True, "", "abort"),
        (8, False, "cc", None),
        (7, True, "dd", "08"),
    ]
    lines: list[dict[str, object]] = []
    for offset, (producer_id, txn, key, value) in enumerate(told):
        control = value in ("abort", "commit")
        lines.append({"base_offset": offset, "pid": producer_id, "txn": txn, "control": control})
        marker = {"abort": "00000000", "commit": "00000001"}
        lines.append(
            {"offset": offset, "key": marker[str(value)], "value": "000000000000"}
            if control
            else {"offset": offset, "key": key, "value": value}
        )
    assert compare.alive(lines) == {"aa": "04", "bb": "02", "dd": "08"}
    assert compare.alive(lines, 5) == {"aa": "04", "dd": "08"}
    assert compare.alive(lines[:10]) == {"aa": "03", "bb": "02"}
