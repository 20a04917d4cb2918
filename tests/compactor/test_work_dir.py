"""The work directory is private, has what tasks expect, and does not outlive the run."""

import os
import tempfile
from pathlib import Path

import pytest

from compactor.errors import CleaningFailedError
from compactor.work_dir import SUBDIRECTORIES, open_work_dir


def test_it_is_made_private_and_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    with open_work_dir(str(tmp_path), "cafe") as path:
        assert os.path.dirname(path) == str(tmp_path)
        assert "cafe" in os.path.basename(path)
        assert os.stat(path).st_mode & 0o777 == 0o700
        assert sorted(os.listdir(path)) == sorted(SUBDIRECTORIES)
        Path(path, "parts", "x").write_bytes(b"x")
    assert os.listdir(tmp_path) == []


def test_it_is_removed_when_the_run_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_work_dir(str(tmp_path), "cafe"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_by_default_it_is_where_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_work_dir(None, "cafe") as path:
        assert os.path.dirname(path) == str(tmp_path)


def test_where_it_cannot_be_made_the_run_fails_in_plain_words(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    failed = pytest.raises(CleaningFailedError, match=f"{missing}: No such file.* was changed")
    with failed, open_work_dir(missing, "cafe"):
        pytest.fail("there is no such directory")
