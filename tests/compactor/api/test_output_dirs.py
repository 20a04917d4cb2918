"""Where copies may be made."""

from pathlib import Path

import pytest

from compactor.api.output_dirs import output_dirs
from compactor.directory_state import MANIFEST, UNFINISHED
from compactor.errors import RefusedError
from compactor.exit_codes import UsageError


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def test_a_new_and_an_empty_directory_are_taken(logs: Path) -> None:
    new, empty = logs.parent / "new", logs.parent / "empty"
    empty.mkdir()
    assert output_dirs([str(new), str(empty)], [str(logs), "/other"]) == (str(new), str(empty))
    assert not new.exists()
    assert output_dirs([], [str(logs)]) == ()


@pytest.mark.parametrize("inside", ["", "x", "../logs"])
def test_one_in_the_other_is_refused(logs: Path, inside: str) -> None:
    for pair in ((logs / inside, logs), (logs, logs / inside), (logs.parent / "l", logs)):
        (logs.parent / "l").unlink(missing_ok=True)
        (logs.parent / "l").symlink_to(logs)
        with pytest.raises(UsageError, match="in the other, or they are the same"):
            output_dirs([str(pair[0])], [str(pair[1])])


def test_two_copies_in_one_place_are_refused(logs: Path) -> None:
    new = str(logs.parent / "new")
    with pytest.raises(UsageError, match="in the other, or they are the same"):
        output_dirs([new, new], [str(logs), "/other"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("file", "not empty"),
        (".lock", "never finished: a run was killed or failed"),
        (MANIFEST, "holds a finished copy already"),
        (UNFINISHED, "never finished: a run was killed or failed. It is of no use. Remove it"),
    ],
)
def test_a_place_in_use_is_refused(logs: Path, name: str, problem: str) -> None:
    place = logs.parent / "place"
    (place / name).mkdir(parents=True)
    with pytest.raises(RefusedError, match=problem):
        output_dirs([str(place)], [str(logs)])


def test_a_place_that_cannot_be_is_refused(logs: Path) -> None:
    (logs.parent / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        output_dirs([str(logs.parent / "file")], [str(logs)])
    with pytest.raises(UsageError, match=r"there is no directory .*absent"):
        output_dirs([str(logs.parent / "absent" / "new")], [str(logs)])
    (logs / UNFINISHED).mkdir()
    with pytest.raises(RefusedError, match="a copy that was never finished"):
        output_dirs([str(logs.parent / "new")], [str(logs)])
