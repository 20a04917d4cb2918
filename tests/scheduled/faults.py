"""What may go wrong in a night, and what has to wake a person: one alert each, and when.

Hours are those of the fault's first day. An alert on a run that has not come to its end fires when
the last good one is more than 26 hours old, and has been so at two looks an hour apart.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from tests.scheduled.nights import BATCHES_A_DAY, Host

NIGHT, NOON = 3, 12


class Fault(NamedTuple):
    name: str
    alert: str
    fires: tuple[int, int]  # from this hour on, to that one, exclusive
    days: int
    at: Callable[[Host, int], bool]  # at an hour; whether no run is to follow then
    unplanned: range = range(0)  # hours without a plan


def _lock_held(host: Host, hour: int) -> bool:
    if hour == NIGHT:
        with _held_by_another(host):
            assert host.run() == 3 and "lock" in host.said, host.said
    return hour == NIGHT


@contextmanager
def _held_by_another(host: Host) -> Iterator[None]:
    """The lock of the log directory, by a process of its own."""
    (ready, told), (wait, end) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        with lock_log_dirs([str(host.paths.log_dir)]):
            os.write(told, b".")
            os.close(end)
            os.read(wait, 1)
        os._exit(0)
    os.read(ready, 1)
    try:
        yield
    finally:
        for descriptor in (end, wait, ready, told):
            os.close(descriptor)
        os.waitpid(pid, 0)


def _disk_full(host: Host, hour: int) -> bool:
    if hour == NIGHT:
        with pytest.MonkeyPatch.context() as patch:
            full = os.statvfs_result((4096, 4096, 10**6, 0, 0, 10**6, 10**6, 10**6, 0, 255))
            patch.setattr(os, "statvfs", lambda _: full)
            assert host.run() == 3, host.said
    return hour == NIGHT


def _killed(host: Host, hour: int) -> bool:
    if hour == NIGHT:
        host.killed_run()
    return hour == NIGHT


def _not_started(host: Host, hour: int) -> bool:  # noqa: ARG001
    return hour == NIGHT


def _damaged(host: Host, hour: int) -> bool:
    path = _closed_segment(host)
    kept = host.paths.work_dir.parent / "sound"
    if hour == NIGHT:
        kept.write_bytes(path.read_bytes())
        path.write_bytes(path.read_bytes()[:-5] + b"wrong")
        assert host.run() == 4, host.said
    if hour == NIGHT + 1:
        path.write_bytes(kept.read_bytes())
    return hour == NIGHT


def _closed_segment(host: Host) -> Path:
    """The last one."""
    return sorted((host.paths.log_dir / "orders-0").glob("*.log"))[-2]


def _hanging_transaction(host: Host, hour: int) -> bool:
    """Begun at noon, ended two days later. Behind it there is more than the log had until then."""
    if hour == NOON:
        with host.broker() as manager:
            log = manager.logs["prices", 0]
            record = Record(0, host.now_ms, b"key", b"value")
            sent_by = BatchOptions(
                producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
            )
            log.append_as_leader(encode_batch([record], options=sent_by))
            for _ in range(15 * BATCHES_A_DAY):
                log.append_as_leader(encode_batch([host.record(n) for n in range(10)]))
    if hour == NOON + 48:
        words = ("log", "abort", host.paths.log_dir, "prices-0", "--producer-id", 5)
        assert host.command(*words, "--yes", "--only-replica") == 0, host.said
    return False


def _as_ever(host: Host, hour: int) -> bool:  # noqa: ARG001
    return False


FAULTS = (
    Fault("lock held", "CompactorNotRun", (7, 27), 2, _lock_held),
    Fault("disk full", "CompactorNoRoom", (3, 27), 2, _disk_full),
    Fault("killed", "CompactorNotRun", (7, 27), 2, _killed),
    Fault("not started", "CompactorNotRun", (7, 27), 2, _not_started),
    Fault("damaged", "CompactorLogsSetAside", (3, 27), 2, _damaged),
    Fault("hanging transaction", "CompactorLogBlocked", (36, 60), 4, _hanging_transaction),
    Fault("plan not started", "CompactorNotRun", (8, 12), 2, _as_ever, range(NIGHT + 1, NOON)),
)
