"""Every crash state of a swap in a log that is in use, opened again: C-15.9, C-16.3, C-16.5.

Two kinds of file stand in .swap for these alone. Without the first an index of aborted transactions
outlives the segment that it is of, and committed records are read as aborted; without the second a
segment that was split stays beside what it was split into, and its records are there twice.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.formats import txn_index
from storage.formats.txn_index import AbortedTxn
from storage.log.loading import LoadingState, LogOptions
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.log_state import CleanedGroup
from storage.log.scheduler import ManualScheduler
from tests.crash.matrix import sample
from tests.crash.recorder import Recorder
from tests.crash.states import CrashState, crash_states
from tests.support.made_log import ABORT_KEY, keyed, make_partition, marker, of_producer
from tests.support.reference_batch import encode, split

NAME, CLEANED = "orders-0", "cleaned"
ABORTED = AbortedTxn(7, 0, 1, 2)
FAR = 2**31 + 7
SAMPLE = 100
INDEX_BYTES = 1024  # not 10 MiB, of which each state would have its own


def opened(root: Path, end: int) -> Log:
    """After a crash of a log that was flushed to its end."""
    state = LoadingState(is_clean=False, recovery_point=end)
    config = LogConfig(segment_index_bytes=INDEX_BYTES)
    scheduler = ManualScheduler(lambda: 0)
    options = LogOptions(clock=lambda: 0, scheduler=scheduler, config=config, state=state)
    return Log.open(str(root / NAME), options)


def states(root: Path, change: Callable[[], object]) -> Sequence[CrashState]:
    recorder = Recorder(root, each_write=True)
    with recorder.recording():
        change()
    assert not recorder.unseen
    return sample(list(crash_states(recorder.record)), SAMPLE)


def made(root: Path, segments: dict[int, list[bytes]]) -> Path:
    partition = make_partition(root, segments, NAME)
    for path in partition.glob("*.snapshot"):
        path.unlink()
    (root / CLEANED).mkdir()
    return partition


def test_an_index_of_aborted_transactions_does_not_outlive_its_segment(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    transaction = [encode(of_producer(keyed(0, "a"), 7)), marker(1, 7, ABORT_KEY)]
    others = {2: [encode(keyed(2, "b"))], 3: [encode(keyed(3, "c"))]}
    partition = made(root, {0: transaction, **others})
    (partition / file_name(0, TXN_INDEX)).write_bytes(txn_index.encode(ABORTED))
    for kind in (LOG, INDEX, TIME_INDEX):
        (root / CLEANED / file_name(0, kind)).write_bytes(b"")
    log = opened(root, 4)
    group = CleanedGroup(str(root / CLEANED), (0,), (0,))
    found = set()
    swapped = states(root, lambda: log.replace_segments(group, log.segments[:1]))
    for number, state in enumerate(swapped):
        again = tmp_path / str(number)
        state.write(again, [NAME, CLEANED])
        with opened(again, 4) as left:
            found.add((left.segments[0].size_bytes > 0, tuple(left.aborted_transactions(0, 4))))
    assert found == {(True, (ABORTED,)), (False, ())}


def test_a_segment_does_not_stay_beside_what_it_was_split_into(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    batches = [encode(keyed(base, "a")) for base in (5, FAR)]
    partition = made(root, {0: []})
    (partition / file_name(0, LOG)).write_bytes(b"".join(batches))
    found = set()
    for number, state in enumerate(states(root, lambda: opened(root, FAR + 1))):
        again = tmp_path / str(number)
        state.write(again, [NAME, CLEANED])
        with opened(again, FAR + 1) as left:
            logs = [Path(segment.path(LOG)).read_bytes() for segment in left.segments]
        found.add(tuple(raw for data in logs for raw in split(data)))
    assert found == {tuple(batches)}
