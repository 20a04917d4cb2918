"""`python -m compactor.prepare`: what the first run would do for the machine, or why it cannot."""

import pytest

from cleaner_jobs import first_use
from compactor import prepare
from compactor.errors import CleaningFailedError


def test_without_a_java_it_says_so_and_compiles_the_kernels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(*_: object) -> None:
        raise CleaningFailedError("no Java of version 17 to 25 is there")

    made: list[object] = []
    monkeypatch.setattr(prepare, "use_java", nowhere)
    monkeypatch.setattr(first_use, "kernels_to_make", lambda _: ["kernels"])
    monkeypatch.setattr(first_use, "prepare", lambda _, to_make, __: made.extend(to_make()))
    assert prepare.main() == 0
    assert made == ["kernels"]
    assert capsys.readouterr().err == (
        "no Java of version 17 to 25 is there. Runs work without it, in processes of this host\n"
    )


def test_a_machine_with_a_java_gets_its_class_archive_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(prepare, "use_java", lambda *_: None)
    monkeypatch.setattr(prepare, "to_make", lambda _: ["kernels", "archive"])
    monkeypatch.setattr(first_use, "prepare", lambda _, to_make, __: made.extend(to_make()))
    assert prepare.main() == 0
    assert made == ["kernels", "archive"]


def test_the_machine_is_prepared_in_a_work_directory_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []
    monkeypatch.setattr(prepare, "use_java", lambda *_: None)
    monkeypatch.setattr(first_use, "prepare", lambda environment, *_: given.append(environment))
    assert prepare.main() == 0
    [environment] = given
    assert "prepare" in environment[first_use.WORK_DIR_VARIABLE]
