"""`python -m compactor.prepare`: what the first run would do for the machine, or why it cannot."""

import pytest

from cleaner_jobs.spark import warm_up
from compactor import prepare
from compactor.errors import CleaningFailedError


def test_without_a_java_it_says_so_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(*_: object) -> None:
        raise CleaningFailedError("no Java of version 17 to 25 is there")

    monkeypatch.setattr(prepare, "use_java", nowhere)
    assert prepare.main() == 1
    assert capsys.readouterr().err == "no Java of version 17 to 25 is there\n"


def test_the_machine_is_prepared_in_a_work_directory_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []
    monkeypatch.setattr(prepare, "use_java", lambda *_: None)
    monkeypatch.setattr(warm_up, "prepare", lambda environment, _: given.append(environment))
    assert prepare.main() == 0
    [environment] = given
    assert "prepare" in environment[warm_up.WORK_DIR_VARIABLE]
