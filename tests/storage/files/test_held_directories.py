"""A directory that is kept open is looked at by its name all the same, and its owner is asked."""

import os
from pathlib import Path

import pytest

from storage.files.held_directories import (
    DirectoryExchangedError,
    hold_log_dir,
    kept_open,
)
from storage.files.local import LOCAL
from tests.support.exchanged import Exchange
from tests.support.file_states import open_files


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    path = tmp_path / "log" / "t-0"
    path.mkdir(parents=True)
    for name in "abc":
        (path / name).write_text(name)
    return path


@pytest.mark.parametrize("for_a_link", [True, False])
def test_what_takes_its_place_meanwhile_is_found_before_the_next_operation(
    partition: Path, for_a_link: bool
) -> None:
    exchange, path = Exchange(partition, for_a_link), str(partition)
    exchanged = pytest.raises(DirectoryExchangedError, match=path)
    with hold_log_dir(os.path.dirname(path), lambda: None), kept_open(path):
        LOCAL.remove(f"{path}/a")
        exchange()
        with exchanged:
            LOCAL.rename(f"{path}/b", f"{path}/b.deleted")
        with exchanged:
            LOCAL.remove(f"{path}/b")
        with exchanged:
            LOCAL.sync_directory(path)
        with exchanged:
            LOCAL.list_names(path)
        with exchanged:
            LOCAL.read_bytes(f"{path}/c")
        with exchanged, kept_open(path):
            pass
    assert exchange.is_untouched()
    assert sorted(os.listdir(exchange.moved)) == ["b", "c"]


def test_a_directory_that_is_gone_is_an_error(partition: Path) -> None:
    path = str(partition)
    with hold_log_dir(os.path.dirname(path), lambda: None), kept_open(path):
        partition.rename(partition.parent / "gone")
        with pytest.raises(FileNotFoundError, match=path):
            LOCAL.remove(f"{path}/a")


def test_owners_are_asked_before_each_change_alone(partition: Path) -> None:
    asked: list[str] = []
    path = str(partition)
    with hold_log_dir(os.path.dirname(path), lambda: asked.append("asked")), kept_open(path):
        LOCAL.look_up(f"{path}/a")
        assert not asked
        LOCAL.rename(f"{path}/a", f"{path}/d")
        LOCAL.remove(f"{path}/d")
    assert len(asked) == 2


def test_an_owner_who_is_none_any_more_ends_it(partition: Path) -> None:
    def refuse() -> None:
        raise PermissionError("not the owner")

    path = str(partition)
    refused = pytest.raises(PermissionError, match="not the owner")
    with hold_log_dir(os.path.dirname(path), refuse), kept_open(path), refused:
        LOCAL.remove(f"{path}/a")
    assert sorted(os.listdir(path)) == ["a", "b", "c"]


def test_a_directory_of_ours_that_we_rename_or_make_anew_is_another(partition: Path) -> None:
    path = str(partition)
    with hold_log_dir(os.path.dirname(path), lambda: None), kept_open(path):
        LOCAL.rename(path, f"{path}.deleted")
        LOCAL.make_directory(path)
        with pytest.raises(DirectoryExchangedError):
            LOCAL.remove(f"{path}/a")
    assert sorted(os.listdir(f"{path}.deleted")) == ["a", "b", "c"]


def test_it_is_one_directory_at_a_time(partition: Path) -> None:
    other = partition.parent / "u-0"
    other.mkdir()
    (other / "x").touch()
    path, before = str(partition), open_files()
    with hold_log_dir(os.path.dirname(path), lambda: None):
        with kept_open(path):
            with kept_open(str(other)):
                LOCAL.remove(f"{other}/x")
                LOCAL.remove(f"{path}/a")
            LOCAL.remove(f"{path}/b")
            assert len(open_files()) == len(before) + 1
        assert open_files() == before
    assert (os.listdir(path), os.listdir(other)) == (["c"], [])


def test_an_error_names_the_whole_path(partition: Path) -> None:
    path = str(partition)
    with hold_log_dir(os.path.dirname(path), lambda: None), kept_open(path):
        with pytest.raises(FileNotFoundError) as found:
            LOCAL.remove(f"{path}/x")
        assert found.value.filename == f"{path}/x"
        with pytest.raises(FileNotFoundError) as found:
            LOCAL.rename(f"{path}/x", f"{path}/y")
        assert (found.value.filename, found.value.filename2) == (f"{path}/x", f"{path}/y")


def test_of_a_directory_that_nobody_holds_nothing_is_kept(partition: Path) -> None:
    before = open_files()
    with kept_open(str(partition)):
        assert open_files() == before
        LOCAL.remove(f"{partition}/a")
