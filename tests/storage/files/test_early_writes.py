"""A range whose writing was begun is what it was, and errors are left to the sync."""

import os
from pathlib import Path

import pytest

from storage.files import early_writes
from storage.files.early_writes import begin_to_write

DATA = bytes(range(256)) * 4096


def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the system's own function answers from now on."""
    answers: list[int] = []
    real = early_writes._sync_file_range
    assert real is not None, "Linux has it"

    def noted(*arguments: int) -> None:
        answers.append(real(*arguments))

    monkeypatch.setattr(early_writes, "_sync_file_range", noted)
    return answers


def test_the_system_takes_it_and_the_bytes_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, path = calls(monkeypatch), tmp_path / "file"
    with path.open("w+b") as file:
        file.write(DATA)
        file.flush()
        begin_to_write(file.fileno(), 4096, len(DATA) - 4096)
        begin_to_write(file.fileno(), 0, 0)  # would mean all of it
    assert answers == [0]
    assert path.read_bytes() == DATA


def test_nothing_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = calls(monkeypatch)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    begin_to_write(descriptor, 0, 1)
    assert answers == [-1]
    monkeypatch.setattr(early_writes, "_sync_file_range", None)  # another system
    begin_to_write(descriptor, 0, 1)
