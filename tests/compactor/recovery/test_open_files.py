"""How many files the recovery of a log has open."""

import os
from pathlib import Path

import pytest

from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir
from compactor.settings.config import load_config
from storage.files.local import LOCAL
from storage.formats import clean_shutdown
from tests.support.files.watched import Operation, WatchedFiles
from tests.support.made_log import NOW_MS, keyed, make_partition

DESCRIPTORS = "/proc/self/fd"


@pytest.mark.parametrize("as_kafka", [False, True])
def test_many_segments_are_recovered_with_few_open_files(tmp_path: Path, as_kafka: bool) -> None:
    """A process may have 1,024 open, and several logs are recovered at once."""
    partition = make_partition(tmp_path / "logs", {base: [keyed(base, "a")] for base in range(100)})
    (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    before = len(os.listdir(DESCRIPTORS))
    most = 0

    def count(_: Operation) -> None:
        nonlocal most
        most = max(most, len(os.listdir(DESCRIPTORS)))

    rules = LoadRules(load_config(), NOW_MS, as_kafka)
    [log] = recover_log_dir(str(partition.parent), rules, files=WatchedFiles(LOCAL, count)).logs
    assert log.problem is None and log.rebuilt
    assert most - before < 80
