"""A sample of the campaign: files that were edited are read, or refused in words."""

from pathlib import Path

import pytest

from tests.read_back.campaign import untyped_errors
from tests.read_back.targets import Target, targets


def test_edited_files_end_in_no_untyped_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert untyped_errors(targets(tmp_path, monkeypatch), 600, 7, tmp_path) == []


def test_an_untyped_error_is_noticed(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        raise KeyError(path.name)

    assert len(untyped_errors({"any": Target(b"{}", read)}, 3, 1, tmp_path)) == 3
