"""A sample of the campaign: files that were edited are read, or refused in words."""

from pathlib import Path

import pytest

from tests.read_back.campaign import edited_files
from tests.read_back.targets import Target, targets


def test_edited_files_end_in_no_untyped_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = edited_files(targets(tmp_path, monkeypatch), 600, 7, tmp_path)
    assert [problem for case in cases for problem in case.attempt().problems] == []


def test_an_untyped_error_is_noticed(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        raise KeyError(path.name)

    cases = edited_files({"any": Target(b"{}", read)}, 3, 1, tmp_path)
    assert [len(case.attempt().problems) for case in cases] == [1, 1, 1]
