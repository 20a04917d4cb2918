"""Leader epochs and where they begin: L-16 of docs/spec/engine.md, EE-126 to EE-128."""

import pytest

from storage.log.errors import IllegalArgumentError
from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.scheduler import ManualScheduler
from tests.support.files.memory import MemoryFiles

PATH = "/t-0/leader-epoch-checkpoint"


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory("/t-0")
    return files


def opened(files: MemoryFiles, *entries: tuple[int, int]) -> LeaderEpochFileCache:
    epochs = LeaderEpochFileCache(files, "/t-0", ManualScheduler(lambda: 0))
    for epoch, offset in entries:
        epochs.assign(epoch, offset)
    return epochs


def written(files: MemoryFiles) -> list[str]:
    return files.read_bytes(PATH).decode().splitlines()[2:]


def test_an_epoch_takes_the_place_of_those_that_are_not_before_it(files: MemoryFiles) -> None:
    """EE-126, EE-127, L-16.1: also an older one; the file follows at once."""
    epochs = opened(files, (2, 6), (3, 9), (5, 9))
    assert epochs.entries == [(2, 6), (5, 9)]
    assert written(files) == ["2 6", "5 9"]
    epochs.assign(5, 12)  # the latest one, later: nothing
    assert epochs.entries == [(2, 6), (5, 9)]
    epochs.assign(5, 8)
    assert epochs.entries == [(2, 6), (5, 8)]
    epochs.assign(2, 30)
    assert epochs.entries == [(2, 30)]
    assert written(files) == ["2 30"]
    for wrong in ((-1, 0), (0, -1)):
        with pytest.raises(IllegalArgumentError):
            epochs.assign(*wrong)


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-1, (-1, -1)), (0, (0, 6)), (2, (2, 9)), (3, (2, 9)), (5, (5, 20)), (6, (-1, -1))],
)
def test_where_an_epoch_ends(files: MemoryFiles, epoch: int, end: tuple[int, int]) -> None:
    """EE-126, L-16.2."""
    assert opened(files).end_offset(epoch, 20) == (-1, -1)
    assert opened(files, (2, 6), (3, 9), (5, 9)).end_offset(epoch, 20) == end


@pytest.mark.parametrize(("offset", "epoch"), [(5, None), (6, 2), (8, 2), (9, 5), (99, 5)])
def test_the_epoch_of_an_offset(files: MemoryFiles, offset: int, epoch: int | None) -> None:
    """L-16.3."""
    assert opened(files, (2, 6), (5, 9)).epoch_for(offset) == epoch


def test_epochs_are_cut_off_at_both_ends(files: MemoryFiles) -> None:
    """EE-128, L-16.4: the epoch that the start is in begins there."""
    epochs = opened(files, (2, 6), (3, 9), (5, 12))
    epochs.truncate_from_start(10)
    assert epochs.entries == [(3, 10), (5, 12)]
    epochs.truncate_from_end(12)
    assert epochs.entries == [(3, 10)]
    assert written(files) == ["3 10"]
    epochs.truncate_from_start(10)  # it counts as removed, and is put back
    epochs.truncate_from_start(9)
    epochs.truncate_from_end(11)
    epochs.truncate_from_end(-1)
    assert epochs.entries == [(3, 10)]


def test_a_cut_leaves_a_log_alone_that_is_gone(files: MemoryFiles) -> None:
    """L-16.4."""
    epochs = opened(files, (2, 6))
    files.rename("/t-0", "/elsewhere")
    epochs.truncate_from_end(0)
    assert epochs.entries == []
    assert not files.exists(PATH)


def test_the_file_is_emptied_with_the_epochs(files: MemoryFiles) -> None:
    """L-16.5."""
    opened(files, (2, 6)).clear()
    assert written(files) == []


def test_entries_of_a_file_that_are_out_of_order_go(files: MemoryFiles) -> None:
    """L-16.6: each is assigned in turn."""
    files.replace_file(PATH, b"0\n3\n2 6\n5 9\n3 7\n")
    assert opened(files).entries == [(2, 6), (3, 7)]
    files.replace_file(PATH, b"0\n3\n2 6\n")
    with pytest.raises(OSError, match="leader-epoch-checkpoint"):
        opened(files)
