"""Which backends logs may stand on: those that promise what a change in place needs."""

from pathlib import Path

import pytest

from storage.errors import UnsupportedBackendError
from storage.files.backends import require_in_place


def test_a_local_path_or_url_is_taken_as_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert require_in_place("/var/logs") == "/var/logs"
    assert require_in_place("logs/../other") == str(tmp_path / "other")
    assert require_in_place("file:///var/logs") == "/var/logs"
    assert require_in_place("local:///var/logs/") == "/var/logs"


def test_what_is_above_a_link_is_what_the_system_takes_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two directories have the name `logs`; `cd link/..` leads to the one beside the target."""
    (tmp_path / "disk" / "kafka").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "kafka")
    monkeypatch.chdir(tmp_path)
    assert require_in_place("link/../logs") == str(tmp_path / "disk" / "logs")
    assert require_in_place("link") == str(tmp_path / "link")


@pytest.mark.parametrize(
    "url",
    ["s3://bucket/logs", "memory://logs", "hdfs://host/logs", "simplecache::s3://bucket/logs"],
)
def test_a_backend_without_the_promise_of_a_rename_is_refused(url: str) -> None:
    with pytest.raises(UnsupportedBackendError, match="copy them to a disk first"):
        require_in_place(url)


def test_a_backend_nobody_knows_is_refused() -> None:
    with pytest.raises(UnsupportedBackendError, match="gopher:, which is not known here"):
        require_in_place("gopher://host/logs")
