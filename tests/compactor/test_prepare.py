"""`python -m compactor.prepare`: what the first run would do for the machine, or why it cannot."""

from collections.abc import Callable

import pytest

from cleaner_jobs import first_use
from compactor import prepare
from compactor.errors import CleaningFailedError


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done, in turn."""
    done: list[str] = []

    def compiled(_: object, say: Callable[[str], None]) -> None:
        done.append("kernels")
        say("compiled")

    monkeypatch.setattr(prepare, "use_java", lambda *_: done.append("Java"))
    monkeypatch.setattr(first_use, "prepare", compiled)
    return done


def test_a_java_is_made_usable_and_the_kernels_are_compiled(
    calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    prepare.main()
    assert calls == ["Java", "kernels"]
    assert capsys.readouterr().err == "compiled\n"


def test_without_a_java_it_says_so_and_compiles_the_kernels(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(*_: object) -> None:
        raise CleaningFailedError("no Java of version 17 to 25 is there")

    monkeypatch.setattr(prepare, "use_java", nowhere)
    prepare.main()
    assert calls == ["kernels"]
    assert capsys.readouterr().err == (
        "no Java of version 17 to 25 is there. Runs work without it, in processes of this host\n"
        "compiled\n"
    )
