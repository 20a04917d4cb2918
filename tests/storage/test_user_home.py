"""Where a user keeps files: HOME, what the passwd file says, or a directory in place of both."""

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from storage.user_home import NOWHERE, HomeTakenError, home_of, is_stand_in, name_of_user

NUMBER = os.geteuid()


@pytest.fixture
def nameless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files of a user that no passwd file knows."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_a_user_with_a_name_has_the_home_that_the_system_says() -> None:
    known = pwd.getpwuid(NUMBER)
    assert (name_of_user(), home_of({})) == (known.pw_name, known.pw_dir)
    assert home_of({"HOME": "/another"}) == "/another"


def test_a_user_without_a_name_has_its_number_and_the_home_that_it_can_write_to(
    nameless: Path,
) -> None:
    own = nameless / "own"
    own.mkdir()
    assert (name_of_user(), home_of({"HOME": str(own)})) == (str(NUMBER), str(own))


@pytest.mark.parametrize("home", [None, "", "/not/there"])
def test_without_one_a_private_directory_takes_its_place(nameless: Path, home: str | None) -> None:
    found = home_of({} if home is None else {"HOME": home})
    assert found == str(nameless / f"log-compactor-{NUMBER}")
    assert is_stand_in(found)
    assert os.stat(found).st_mode & 0o777 == 0o700
    assert home_of({}) == found, "the next run finds what this one keeps"


def test_a_directory_that_others_may_write_in_is_none(nameless: Path) -> None:
    """Kernels are loaded from there, so whoever can write there could run anything."""
    taken = nameless / f"log-compactor-{NUMBER}"
    taken.mkdir()
    taken.chmod(0o777)
    with pytest.raises(HomeTakenError, match="Set HOME"):
        home_of({})
    taken.rmdir()
    taken.symlink_to(nameless)
    with pytest.raises(HomeTakenError, match="Set HOME"):
        home_of({})


def test_without_a_place_for_temporary_files_nothing_is_kept(
    nameless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_place() -> str:
        raise FileNotFoundError(nameless)

    monkeypatch.setattr(tempfile, "gettempdir", no_place)
    assert home_of({}) == NOWHERE
