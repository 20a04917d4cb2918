"""Names and links in a log directory that nobody who is honest has put there.

None is followed out of the log directory, waited for, or shown as it is; the log beside it is
cleaned.
"""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.host.printable import printable
from compactor.outcome.json_values import to_json
from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.recovery.log_dir_recovery import recover_log_dir
from compactor.settings.config import load_config
from compactor.verification.verify import verify
from compactor.views.report_json import to_line
from storage.file_names import INDEX, LOG, SNAPSHOT, file_name
from storage.formats import checkpoint, clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.compactor.plan_logs import plan_log_dirs
from tests.damage.damaged_logs import files_in, sound_log
from tests.support.local_round import LocalRound, NoProgress

SOURCE = "e23-first-dropped-none-0"
NOW_MS = 1_700_000_000_000


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two partitions, sound-0 and odd-0, and what is no business of ours beside the directory."""
    root = tmp_path / "logs"
    root.mkdir()
    for name in ("sound-0", "odd-0"):
        shutil.copytree(sound_log(SOURCE).before, root / name)
    shutil.copytree(root / "odd-0", tmp_path / "elsewhere" / "odd-0")
    clean_shutdown.write(str(root))
    return root


def planned(log_dir: Path) -> RoundPlan:
    config = log_dir.parent / "topics.toml"
    config.write_text('[defaults]\ncleanup.policy = "compact"\nmin.cleanable.dirty.ratio = 0.0\n')
    return plan_log_dirs([str(log_dir)], load_config(str(config)), NOW_MS)


def run(local: LocalRound, log_dir: Path) -> tuple[CleaningReport, dict[str, LogReport]]:
    recover_log_dir(str(log_dir))
    report = local.run(planned(log_dir))
    return report, {log.topic: log for log in report.logs}


def tree(root: Path) -> dict[str, object]:
    """All there is: bytes, or where a link leads, and the kind of everything else."""
    found: dict[str, object] = {}
    for folder, directories, names in os.walk(root):
        for name in (*directories, *names):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else mode
            found[str(path)] = os.readlink(path) if path.is_symlink() else content
    return found


def as_link(path: Path) -> None:
    """To the same bytes elsewhere."""
    target = path.parents[1] / "theirs"
    path.rename(target)
    path.symlink_to(target)


def as_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


def as_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_socket(path: Path) -> None:
    path.unlink()
    before = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


WAYS = [as_link, as_dangling_link, as_loop, as_pipe, as_directory, as_socket]
FILES = [
    file_name(0, LOG),
    file_name(4, LOG),
    file_name(0, INDEX),
    file_name(4, SNAPSHOT),
    LEADER_EPOCH_CHECKPOINT,
]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_file_sets_its_log_aside(
    local: LocalRound, log_dir: Path, way: Callable[[Path], None], file: str
) -> None:
    way(log_dir / "odd-0" / file)
    before = tree(log_dir / "odd-0"), tree(log_dir.parent / "elsewhere")
    _, logs = run(local, log_dir)
    assert (tree(log_dir / "odd-0"), tree(log_dir.parent / "elsewhere")) == before
    assert logs["odd"].status is LogStatus.SET_ASIDE
    assert (logs["odd"].reason or "").startswith(f"{file}: is a")
    assert logs["sound"].status is LogStatus.CLEANED
    findings = verify([str(log_dir)], ["odd-0"], NoProgress()).findings
    assert f"{log_dir}/odd-0/{file}" in {finding.path for finding in findings}


@pytest.mark.parametrize("target", ["../elsewhere/odd-0", "sound-0", "nothing", "odd-0"])
def test_a_link_in_the_place_of_a_partition_is_not_followed(
    local: LocalRound, log_dir: Path, target: str
) -> None:
    shutil.rmtree(log_dir / "odd-0")
    (log_dir / "odd-0").symlink_to(target)
    before = tree(log_dir.parent / "elsewhere")
    _, logs = run(local, log_dir)
    assert tree(log_dir.parent / "elsewhere") == before
    assert os.readlink(log_dir / "odd-0") == target
    assert logs["odd"].status is LogStatus.SET_ASIDE
    assert logs["odd"].reason == "is a symbolic link, which is not followed"
    assert logs["sound"].status is LogStatus.CLEANED


@pytest.mark.parametrize("name", [checkpoint.CLEANER_OFFSET, checkpoint.REPLICATION])
@pytest.mark.parametrize("way", WAYS)
def test_a_checkpoint_that_is_no_file_sets_all_logs_aside(
    local: LocalRound, log_dir: Path, way: Callable[[Path], None], name: str
) -> None:
    (log_dir / name).write_text("0\n0\n")
    way(log_dir / name)
    before = tree(log_dir)
    _, logs = run(local, log_dir)
    assert tree(log_dir) == before
    for log in logs.values():
        assert log.status is LogStatus.SET_ASIDE
        assert (log.reason or "").startswith(f"{log_dir}/{name}, byte 0: is a ")


def test_a_log_directory_may_be_a_link(local: LocalRound, log_dir: Path) -> None:
    """The operator has named it."""
    (log_dir.parent / "link").symlink_to(log_dir)
    _, logs = run(local, log_dir.parent / "link")
    assert {log.status for log in logs.values()} == {LogStatus.CLEANED}


@pytest.mark.parametrize(
    "topic", ["new\nline", "esc\x1b[2J", "not-utf8-\udcff", "blank space", "turned\u202e"]
)
def test_a_topic_that_no_broker_has_made_is_left_alone_and_escaped(
    local: LocalRound, log_dir: Path, topic: str
) -> None:
    shutil.copytree(log_dir / "odd-0", log_dir / f"{topic}-0")
    before = files_in(log_dir / f"{topic}-0")
    report, logs = run(local, log_dir)
    assert files_in(log_dir / f"{topic}-0") == before
    assert (logs[topic].status, logs["odd"].status) == (LogStatus.SET_ASIDE, LogStatus.CLEANED)
    line = to_line(to_json(report))
    assert line.isascii() and line.isprintable()
    assert topic in {log["topic"] for log in json.loads(line)["logs"]}
    assert printable(topic).isascii() and printable(topic).isprintable()
    entries = checkpoint.read(str(log_dir / checkpoint.CLEANER_OFFSET))
    assert entries == {("odd", 0): 4, ("sound", 0): 4}


def test_a_backup_of_hard_links_is_not_written_through(local: LocalRound, log_dir: Path) -> None:
    """`cp -al`: every file has another name elsewhere, with the same bytes for good."""
    backup = log_dir.parent / "backup"
    shutil.copytree(log_dir, backup, copy_function=os.link)
    before = tree(backup)
    facts = [path.stat() for path in sorted(backup.rglob("*.*"))]
    _, logs = run(local, log_dir)
    assert {log.status for log in logs.values()} == {LogStatus.CLEANED}
    assert tree(backup) == before
    now = [path.stat() for path in sorted(backup.rglob("*.*"))]
    told = [(s.st_mtime_ns, s.st_mode, s.st_uid, s.st_gid) for s in now]
    assert told == [(s.st_mtime_ns, s.st_mode, s.st_uid, s.st_gid) for s in facts]
