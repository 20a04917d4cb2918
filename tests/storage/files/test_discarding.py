import errno
import os
from pathlib import Path

import pytest

from storage.files.discarding import discard_directory


def _failing(_: int) -> os.stat_result:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_all_goes_and_nothing_is_raised_where_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shutil.rmtree` lets an error of its own descriptors pass, whatever it is told to ignore."""
    (tmp_path / "made" / "inner").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", _failing)
        discard_directory(str(tmp_path / "made"))
    discard_directory(str(tmp_path / "made"))
    assert not (tmp_path / "made").exists()
    discard_directory(str(tmp_path / "made"))
