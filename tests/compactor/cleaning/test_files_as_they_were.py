"""What takes a file's place has its owner, mode and extended attributes: whole rounds."""

import errno
import os
from pathlib import Path

import pytest

from compactor.outcome.round_report import LogStatus
from compactor.planning import layout
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.files.file_attributes import ACCESS_LIST
from storage.formats import checkpoint
from tests.compactor.small_rounds import (
    GROUPS,
    check_one_failed,
    logs_in,
    plan_of_both,
    two_logs,
)
from tests.storage.files.test_file_attributes import ALLOWS_77
from tests.support.local_round import LocalRound
from tests.support.made_log import MTIME_NS, keyed, make_partition, plan_of, round_of

IS_ROOT = os.geteuid() == 0
OWNER = (1234, 4321) if IS_ROOT else (os.geteuid(), os.getegid())
KINDS = (LOG, INDEX, TIME_INDEX)


def give_to_broker(path: Path, mark: bytes) -> None:
    """Let a file be as another user's, with an access list and an attribute of its own."""
    times = path.stat()
    os.chown(path, *OWNER)
    os.setxattr(path, "user.mark", mark)
    path.chmod(0o640)
    os.setxattr(path, ACCESS_LIST, ALLOWS_77)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def attributes(path: Path) -> tuple[object, ...]:
    found = path.stat()
    extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return (found.st_uid, found.st_gid), found.st_mode & 0o7777, extended


def of_broker(mark: bytes) -> tuple[object, ...]:
    return OWNER, 0o640, {"user.mark": mark, ACCESS_LIST: ALLOWS_77}


@pytest.mark.parametrize("joined", [False, True])
def test_cleaned_segments_and_checkpoints_are_the_brokers(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    """As the last segment of a group, from which a cleaned one has its time, too (C-14.3)."""
    if joined:
        for name in ("STRETCH_BYTES", "LOG_COST_BYTES"):
            monkeypatch.setattr(layout, name, 1)
        local.cores = 4
        batches = [keyed(i, "abcdefgh" * 25) for i in range(0, 2000, 200)]
        partition = make_partition(tmp_path / "logs", {0: batches, 2000: [keyed(2000, "a")]})
        groups, end, marks = [[0]], 2000, {0: b"0"}
    else:
        partition = logs_in(tmp_path)
        groups, end, marks = GROUPS, 12, {0: b"4", 8: b"8"}
    for path in partition.iterdir():
        give_to_broker(path, path.name[:20].lstrip("0").encode() or b"0")
    entries = tmp_path / "logs" / checkpoint.CLEANER_OFFSET
    checkpoint.write(str(entries), {("orders", 0): 0})
    give_to_broker(entries, b"entries")
    report = local.run(round_of(plan_of(partition, groups, end)))
    assert report.logs[0].status is LogStatus.CLEANED
    assert dict(local.stages)["rewrite"] > 1 or not joined
    for base_offset, mark in marks.items():
        for kind in KINDS:
            path = partition / file_name(base_offset, kind)
            assert attributes(path) == of_broker(mark), path
            assert path.stat().st_mtime_ns == MTIME_NS + int(mark) * 7_000_000
    assert attributes(entries) == of_broker(b"entries")
    assert checkpoint.read(str(entries)) == {("orders", 0): end}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("fchown", "cannot be given to 1234:4321, the owner of the file that it replaces"),
        ("setxattr", "extended attribute user.mark cannot be kept: Operation not permitted"),
    ],
)
def test_a_log_that_cannot_be_given_back_is_left_as_it_is(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, told: str
) -> None:
    """Never a silent change of owner: whoever is not root fails at another user's log."""
    good, bad, _ = two_logs(tmp_path)
    if IS_ROOT:
        os.chown(bad / file_name(4, LOG), 1234, 4321)
    elif call == "fchown":
        pytest.skip("as root")
    os.setxattr(bad / file_name(4, LOG), "user.mark", b"")
    plan = plan_of_both(good, bad)
    original = getattr(os, call)

    def refuse(descriptor: int, *values: object) -> None:
        if str(bad) in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        original(descriptor, *values)

    monkeypatch.setattr(os, call, refuse)
    check_one_failed(local, tmp_path, LogStatus.FAILED, told, plan)


def test_a_checkpoint_that_cannot_be_written_fails_its_logs(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is cleaned stays cleaned; without its entry the next round cleans it once more."""
    partition = logs_in(tmp_path)
    entries = tmp_path / "logs" / checkpoint.CLEANER_OFFSET
    checkpoint.write(str(entries), {("orders", 0): 0})
    before = entries.read_bytes()
    plan = round_of(plan_of(partition, GROUPS, 12))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def no_more_room(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
        write = checkpoint.write

        def failing(path: str, *values: object) -> None:
            monkeypatch.setattr(os, "fsync", full)
            write(path, *values)  # type: ignore[arg-type]

        monkeypatch.setattr(checkpoint, "write", failing)
        return rows

    local.after["rewrite"] = no_more_room
    (log,) = local.run(plan).logs
    assert log.status is LogStatus.FAILED
    assert log.reason == (
        f"cleaned, but the cleaner checkpoint was not written: {entries}.tmp: "
        "No space left on device"
    )
    assert entries.read_bytes() == before
    assert not entries.with_name(f"{entries.name}.tmp").exists()
    assert not (partition / file_name(4, LOG)).exists()
