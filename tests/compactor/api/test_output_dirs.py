"""Where copies may be made."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.api.path_arguments import output_dirs
from compactor.errors import RefusedError
from compactor.log_dirs.directory_state import MANIFEST, UNFINISHED
from compactor.outcome.exit_codes import UsageError


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
        with pytest.raises(UsageError, match="itself, or one of the two lies in the other"):
            output_dirs([str(pair[0])], [str(pair[1])])


def test_two_copies_in_one_place_are_refused(logs: Path) -> None:
    new = str(logs.parent / "new")
    with pytest.raises(UsageError, match="itself, or one of the two lies in the other"):
        output_dirs([new, new], [str(logs), "/other"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("file", "not empty"),
        (".lock", "holds .lock alone: a run was killed, or a broker was here"),
        (MANIFEST, "holds a finished copy already"),
        (UNFINISHED, "never finished: a run was killed or failed. It is of no use. Remove it"),
    ],
)
def test_a_place_in_use_is_refused(logs: Path, name: str, problem: str) -> None:
    place = logs.parent / "place"
    place.mkdir()
    (place / name).touch() if name == ".lock" else (place / name).mkdir()
    with pytest.raises(RefusedError, match=problem):
        output_dirs([str(place)], [str(logs)])


def refused_in(place: Path, logs: Path) -> str:
    with pytest.raises(RefusedError) as refused:
        output_dirs([str(place)], [str(logs)])
    return str(refused.value)


REMOVING = re.compile(r"\brm\b")


@pytest.mark.parametrize(
    "names", [["orders-0/0.log", "meta.properties"], [MANIFEST, "orders-0/0.log"], [".lock"], ["x"]]
)
def test_nobody_is_asked_to_remove_what_no_run_has_left(logs: Path, names: list[str]) -> None:
    """It may be the log directory of a broker, or a copy on which one has started since."""
    place = logs.parent / "place"
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    assert not REMOVING.search(refused_in(place, logs))


def test_to_remove_an_unfinished_copy_is_advice_only_where_nothing_else_is_in_it(
    logs: Path,
) -> None:
    place = logs.parent / "place"
    (place / UNFINISHED).mkdir(parents=True)
    (place / "orders-0").mkdir()
    (place / "__cluster_metadata-0").mkdir()
    for name in ("orders-0/00000000000000000000.log", "meta.properties", f"{MANIFEST}.tmp"):
        (place / name).touch()
    assert f"Remove it (rm -r {place})" in refused_in(place, logs)
    others: list[tuple[str, Callable[[Path], object]]] = [
        ("notes.txt", Path.touch),
        ("backup", Path.mkdir),
        ("orders-0/backup", Path.mkdir),
        (f"{UNFINISHED}/x", Path.touch),
        ("orders-1", lambda path: path.symlink_to(logs)),
        ("orders-0/1.log", lambda path: path.symlink_to(logs)),
    ]
    for name, make in others:
        make(place / name)
        said = refused_in(place, logs)
        assert str(place / name) in said
        assert not REMOVING.search(said)
        if (place / name).is_dir() and not (place / name).is_symlink():
            (place / name).rmdir()
        else:
            (place / name).unlink()


def test_a_place_that_cannot_be_is_refused(logs: Path) -> None:
    (logs.parent / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        output_dirs([str(logs.parent / "file")], [str(logs)])
    with pytest.raises(UsageError, match=r"there is no directory .*absent"):
        output_dirs([str(logs.parent / "absent" / "new")], [str(logs)])
    (logs / UNFINISHED).mkdir()
    with pytest.raises(RefusedError, match="a copy that was never finished"):
        output_dirs([str(logs.parent / "new")], [str(logs)])
