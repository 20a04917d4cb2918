"""Read-only commands beside whoever changes the directory: what vanishes beneath them is told of.

Before each time that a command opens something in the log directory, in turn, that file goes, or
its whole partition does. No command may end otherwise than with an answer.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compactor.command_line import cli
from compactor.outcome.round_report import LogStatus
from compactor.settings.config import Config, load_config
from storage.formats import checkpoint, clean_shutdown
from tests.compactor.plan_logs import plan_log_dirs
from tests.compactor.small_log import END_OFFSET, build
from tests.support.local_round import LocalRound

Removal = Callable[[str], None]


def that_file(path: str) -> None:
    if os.path.isfile(path):
        os.remove(path)


def its_partition(path: str) -> None:
    partition = path if os.path.isdir(path) else os.path.dirname(path)
    if os.path.basename(partition).startswith("orders-"):
        shutil.rmtree(partition)


class _Watch:
    """Counts what is opened below a directory, and removes something at one of these moments."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.seen = 0
        self._moment = -1
        self._remove: Removal = that_file

    def begin(self, root: Path, moment: int, remove: Removal) -> None:
        self.seen, self._moment, self._remove = 0, moment, remove
        self.root = str(root)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        root = self.root
        if root is None or event not in ("open", "os.scandir", "os.listdir"):
            return
        path = arguments[0]
        if not isinstance(path, str | os.PathLike) or not os.fspath(path).startswith(root):
            return
        self.seen += 1
        if self.seen == self._moment + 1:
            self.root = None  # what the removal itself opens does not count
            self._remove(os.fspath(path))
            self.root = root


WATCH = _Watch()
sys.addaudithook(WATCH)  # there is no way to take one away: it stays, and does nothing


@pytest.fixture(autouse=True)
def _no_longer_watching() -> Iterator[None]:
    yield
    WATCH.root = None


def fresh(root: Path) -> Path:
    """A log directory of two partitions."""
    shutil.rmtree(root, ignore_errors=True)
    partition = build(root)
    shutil.copytree(partition, root / "orders-1")
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(root / name), {("orders", 0): END_OFFSET, ("orders", 1): END_OFFSET})
    clean_shutdown.write(str(root))
    return root


def at_every_moment(root: Path, remove: Removal, command: Callable[[], None]) -> int:
    """How many moments there are; at first nothing is removed."""
    moments, moment = 1, -1
    while moment < moments:
        fresh(root)
        WATCH.begin(root, moment, remove)
        command()
        WATCH.root = None
        moments, moment = max(moments, WATCH.seen), moment + 1
    return moments


@pytest.mark.parametrize("remove", [that_file, its_partition])
@pytest.mark.parametrize(
    "words",
    [
        ("plan", "LOG_DIR", "--include", "orders", "--set", "cleanup.policy=compact,delete"),
        ("explain", "LOG_DIR", "orders-0", "--set", "cleanup.policy=compact"),
        ("verify", "LOG_DIR"),
        ("verify", "LOG_DIR", "--against", "OTHER"),
        ("verify", "OTHER", "--against", "LOG_DIR"),
        ("dump", "LOG_DIR/orders-0"),
        ("dump", "LOG_DIR/orders-0/00000000000000000000.log"),
    ],
    ids=lambda words: f"{words[0]}-{len(words[1])}",
)
def test_a_command_answers_whatever_vanishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], remove: Removal
) -> None:
    root, other = tmp_path / "log", fresh(tmp_path / "other")
    argv = [word.replace("LOG_DIR", str(root)).replace("OTHER", str(other)) for word in words]
    codes = set()

    def command() -> None:
        code = cli.main(argv)
        told = capsys.readouterr()
        assert "internal error" not in told.err and "Traceback" not in told.err, told.err
        assert code in (0, 1, 2, 4), told  # 1: dump of what is gone; 2: explain of a log not there
        assert code in (0, 4) or "othing was changed" in told.err, told.err
        codes.add(int(code))

    moments = at_every_moment(root, remove, command)
    assert moments > 2 or words[0] == "dump"
    assert 0 in codes


@pytest.mark.parametrize("remove", [that_file, its_partition])
def test_a_dry_run_reports_the_log_and_goes_on(
    local: LocalRound, tmp_path: Path, remove: Removal
) -> None:
    root = tmp_path / "log"
    config: Config = load_config(None, None, {"cleanup.policy": "compact"})
    would_clean = []

    def command() -> None:
        plan = plan_log_dirs([str(root)], config, 5000)
        report = local.run(plan, dry_run=True)
        assert {log.topic for log in report.logs} <= {"orders"}
        would_clean.append([log.status for log in report.logs].count(LogStatus.WOULD_CLEAN))

    assert at_every_moment(root, remove, command) > 12
    # the other log is there all the time; but a checkpoint that goes bounds both (C-4.4)
    assert set(would_clean) == ({0, 1, 2} if remove is that_file else {1, 2}), would_clean
