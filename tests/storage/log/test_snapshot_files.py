"""A producer snapshot that is gone: L-14.12, and what a listing makes of it."""

from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.file_names import SNAPSHOT, file_name
from storage.files.local import LOCAL
from storage.log.producer_state_manager import SnapshotFiles


def test_a_snapshot_of_a_log_in_use_that_is_gone_is_not_taken_for_damaged(tmp_path: Path) -> None:
    """Seen in Kafka 4.3.1: NoSuchFileException, and the state of the producers stays."""
    path = tmp_path / file_name(8, SNAPSHOT)
    path.write_bytes(b"")
    snapshots = SnapshotFiles(LOCAL, str(tmp_path))
    path.unlink()
    with pytest.raises(FileNotFoundError):
        snapshots.read(8)


def test_a_snapshot_that_is_gone_since_it_was_listed_counts_as_damaged(tmp_path: Path) -> None:
    """A plan takes the next older one."""
    with pytest.raises(CorruptFileError, match="the file is gone"):
        SnapshotFiles(LOCAL, str(tmp_path), [8]).read(8)
