"""The version is that of the installed package."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from compactor.host import machine

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_the_distribution_is_the_one_that_this_project_makes() -> None:
    assert tomllib.loads(PROJECT.read_text())["project"]["name"] == machine.DISTRIBUTION


def test_source_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", lambda name: f"{name} 7")
    machine.version.cache_clear()
    assert machine.version() == "log-compactor 7"
    machine.version.cache_clear()
    monkeypatch.setattr(metadata, "version", not_installed)
    assert machine.version() == "unknown"
    machine.version.cache_clear()
