"""Rounds whose map takes no more than so many keys stop where Kafka's cleaner stops."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleaner_jobs.tasks.map_capacity import find_map_end
from compactor.outcome.round_report import LogReport
from compactor.planning.layout import dirty_stretches
from storage.formats.batch_windows import Buffers
from tests.support.local_round import LocalRound, open_local_round, settings_in
from tests.support.made_log import (
    NOW_MS,
    batch,
    batches_of,
    keyed,
    log_of,
    make_partition,
    plan_of,
    record,
    round_of,
)
from tests.support.reference_batch import ReferenceBatch, decode

BATCHES: list[ReferenceBatch] = [keyed(0, "abaca"), keyed(5, ".a"), keyed(7, "dB"), keyed(9, "ce")]


def confirmed_log(root: Path) -> Path:
    """The log of C-7.8, whose outcome was seen of Kafka (run D)."""
    return make_partition(root, {0: BATCHES[:3], 9: BATCHES[3:], 11: [keyed(11, "z")]})


def cleaned(
    root: Path, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[LogReport, Path, bytes]:
    partition = confirmed_log(root / "logs")
    plan = plan_of(partition, [[0, 9]], 11)
    untouched = log_of(partition, 9).read_bytes()
    local = open_local_round(root / "work", monkeypatch)
    return local.run(round_of(plan), map_capacity=capacity).logs[0], partition, untouched


def kept_offsets(partition: Path, base_offset: int) -> list[int]:
    raws = batches_of(partition, base_offset)
    return [found.offset for raw in raws for found in decode(raw).records]


@pytest.mark.parametrize(
    ("capacity", "end_offset", "kept"),
    [
        (2, 2, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (3, 4, [1, 2, 3, 4, 5, 6, 7, 8]),
        (4, 8, [1, 3, 6, 7, 8]),
    ],
)
def test_a_full_map_ends_the_round_early(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capacity: int,
    end_offset: int,
    kept: list[int],
) -> None:
    """C-7.7, C-7.8; E-2: the null key at 5 goes only with the map that covers it."""
    report, partition, untouched = cleaned(tmp_path, capacity, monkeypatch)
    assert report.end_offset == end_offset
    assert report.first_uncleanable_offset == 11
    checkpoint = (tmp_path / "logs" / "cleaner-offset-checkpoint").read_text()
    assert checkpoint == f"0\n1\norders 0 {end_offset}\n"
    assert kept_offsets(partition, 0) == kept
    assert log_of(partition, 9).read_bytes() == untouched
    assert decode(batches_of(partition, 0)[-1]).attributes & 0x40, "the tombstone's horizon"


@pytest.mark.parametrize("capacity", [5, 6, 10**12])
def test_a_map_that_takes_all_keys_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capacity: int
) -> None:
    report, partition, _ = cleaned(tmp_path, capacity, monkeypatch)
    assert report.end_offset == 11
    assert kept_offsets(partition, 0) == [6, 7, 8, 9, 10]


def test_a_null_key_without_a_value_counts_as_tombstone_behind_the_map(
    local: LocalRound, tmp_path: Path
) -> None:
    """E-5: it is kept, and its batch is given a horizon."""
    nothing = batch(record(2, None, None), record(3, b"c"))
    partition = make_partition(
        tmp_path / "logs", {0: [keyed(0, "ab"), nothing], 4: [keyed(4, "z")]}
    )
    report = local.run(round_of(plan_of(partition, [[0]], 4)), map_capacity=2).logs[0]
    assert report.end_offset == 2, "c does not fit, and a null key is not put"
    first, second = (decode(raw) for raw in batches_of(partition, 0))
    assert (first.attributes, second.attributes) == (0, 0x40)
    assert [(r.offset, r.key, r.value) for r in second.records] == [
        (2, None, None),
        (3, b"c", b"v"),
    ]


def map_end_by_hand(
    segments: dict[int, list[ReferenceBatch]], first_dirty: int, end: int, capacity: int
) -> int:
    """C-7.5, a record at a time."""
    bases = [base for base in segments if base < end]
    start = max(base for base in bases if base <= first_dirty)
    dirty = [base for base in bases if base >= start]
    keys: set[bytes] = set()
    latest = -1
    for base, bound in zip(dirty, [*dirty[1:], end], strict=True):
        for made in segments[base]:
            for found in made.records:
                if found.key is not None and found.offset >= first_dirty:
                    if len(keys) >= capacity:
                        return latest + 1
                    keys.add(found.key)
                    latest = found.offset
            if made.last_offset >= first_dirty:
                latest = made.last_offset
        latest = bound - 1
    return latest + 1


@given(st.data())
def test_the_end_of_the_map_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    words = st.lists(st.text("abcdeF.", min_size=1, max_size=6), min_size=1, max_size=4)
    segments: dict[int, list[ReferenceBatch]] = {}
    offset = 0
    for number in range(data.draw(st.integers(1, 3))):
        offset += number and data.draw(st.integers(0, 2))
        segments[offset] = []
        base = offset
        for word in data.draw(words):
            segments[base].append(keyed(offset, word))
            offset += len(word) + data.draw(st.integers(0, 1))
    end = offset + data.draw(st.integers(0, 1))
    first_dirty = data.draw(st.integers(0, end - 1))
    capacity = data.draw(st.integers(1, 7))
    root = tmp_path_factory.mktemp("log")
    partition = make_partition(root, {**segments, end: [keyed(end, "z")]})
    plan = plan_of(partition, [list(segments)], end, first_dirty)
    start = max(i for i, base in enumerate(segments) if base <= first_dirty)
    stretches = dirty_stretches(plan, (start, 0))
    found = find_map_end(stretches, capacity, settings_in(root / "w", NOW_MS), Buffers())
    assert found.offset == map_end_by_hand(segments, first_dirty, end, capacity)


def test_the_table_grows_with_the_keys(tmp_path: Path) -> None:
    """More keys than its first size has slots."""
    batches = [
        batch(*(record(offset, b"%d" % offset) for offset in range(at, at + 100)))
        for at in range(0, 9000, 100)
    ]
    partition = make_partition(tmp_path / "logs", {0: batches, 9000: [keyed(9000, "z")]})
    stretches = dirty_stretches(plan_of(partition, [[0]], 9000), (0, 0))
    settings = settings_in(tmp_path / "w", NOW_MS)
    for capacity in (8123, 8999):
        assert find_map_end(stretches, capacity, settings, Buffers()).offset == capacity
    assert find_map_end(stretches, 9000, settings, Buffers()).offset == 9000
