"""What the words of the command line may be; a refusal names the option and what it was given."""

import os
from pathlib import Path

import pytest

from compactor.command_line import arguments
from compactor.exit_codes import UsageError


@pytest.mark.parametrize("text", ["a", "=1", " =1", ""])
def test_a_setting_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UsageError, match="expected NAME=VALUE"):
        arguments.setting(text)


def test_a_setting_may_have_an_empty_value_or_an_equals_sign() -> None:
    assert arguments.setting("cleanup.policy=") == ("cleanup.policy", "")
    assert arguments.setting(" a = b=c ") == ("a", "b=c")


@pytest.mark.parametrize(
    "url",
    ["local", "local[2]", "local[*]", "local[4,3]", "spark://h:7077", "k8s://https://h", "yarn"],
)
def test_known_masters(url: str) -> None:
    assert arguments.master(url) == url


@pytest.mark.parametrize(
    "url", ["", "local[0]", "local[-1]", "local[two]", "local[99999]", "h:7077"]
)
def test_unknown_masters(url: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        arguments.master(url)


class TestReportFile:
    def test_json_is_known(self, tmp_path: Path) -> None:
        assert arguments.report_file(None) is None
        for name in ("r.json", "R.JSON"):
            assert arguments.report_file(str(tmp_path / name)) == str(tmp_path / name)

    @pytest.mark.parametrize("name", ["r", "r.txt", "r.html", "json", ".json.gz"])
    def test_an_unknown_extension(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError, match=r"unknown extension '.*', expected \.json"):
            arguments.report_file(str(tmp_path / name))

    def test_a_place_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="there is no directory"):
            arguments.report_file(str(tmp_path / "x" / "r.json"))
        (tmp_path / "d.json").mkdir()
        with pytest.raises(UsageError, match="is a directory"):
            arguments.report_file(str(tmp_path / "d.json"))

    def test_a_place_without_permission(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
        with pytest.raises(UsageError, match="no permission to write in"):
            arguments.report_file(str(tmp_path / "r.json"))
