"""What a process of an executor finds, under the names that directories have where it is."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.tasks import executor_paths
from cleaner_jobs.tasks.executor_paths import (
    SAME_PATHS,
    Asked,
    PathMapping,
    UnfitExecutorError,
    find_problems,
    package_versions,
    require_fit_executor,
)

HERE = PathMapping((("/data", "/mnt/data"), ("/work", "/w")))


def test_paths_are_renamed_wherever_they_stand_and_nothing_else_is() -> None:
    theirs = {"file": "/data/kafka/a-0", "n": 7, "of": ["/data", "/work/x", "/database", "data/b"]}
    ours = {
        "file": "/mnt/data/kafka/a-0",
        "n": 7,
        "of": ["/mnt/data", "/w/x", "/database", "data/b"],
    }
    assert HERE.to_executor(theirs) == ours
    assert HERE.to_driver(ours) == theirs
    assert SAME_PATHS.to_executor(theirs) is theirs


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """What a driver asks that calls `seen` by the name `data`, which does not exist here."""
    (tmp_path / "seen" / "work").mkdir(parents=True)
    (tmp_path / "seen" / "logs" / "orders-0").mkdir(parents=True)
    token = tmp_path / "seen" / "work" / "token"
    token.write_text(str(tmp_path))
    inode = (tmp_path / "seen" / "logs" / "orders-0").stat().st_ino
    return Asked(
        token_path=str(tmp_path / "data" / "work" / "token"),
        token=str(tmp_path),
        directories=[(str(tmp_path / "data" / "logs" / "orders-0"), inode)],
        files=[],
        to_write=True,
        packages=package_versions(),
        names=[(str(tmp_path / "data"), str(tmp_path / name)) for name in ("other", "seen")],
    )


def test_the_name_that_leads_to_the_files_is_taken(asked: Asked, tmp_path: Path) -> None:
    """Of two: the first one leads to other files of the same names."""
    (tmp_path / "other" / "work").mkdir(parents=True)
    (tmp_path / "other" / "work" / "token").write_text("of another run")
    assert find_problems(asked) == []
    paths = require_fit_executor(asked)
    assert paths.to_executor(asked.token_path) == str(tmp_path / "seen" / "work" / "token")
    os.remove(tmp_path / "seen" / "work" / "token")
    assert require_fit_executor(asked) == paths  # looked for once


def test_an_empty_directory_of_the_same_name_is_not_taken(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    missing = f"{tmp_path}/data/work/token: No such file or directory"
    without = asked._replace(names=[], token="unused")
    assert find_problems(without)[0] == ("work-dir", missing)
    with pytest.raises(UnfitExecutorError) as raised:
        require_fit_executor(without)
    assert str(raised.value) == f"executor on {os.uname().nodename} cannot do its part: {missing}"


def test_a_log_of_the_same_name_that_is_another_directory_is_not_taken(asked: Asked) -> None:
    [(path, inode)] = asked.directories
    other = asked._replace(directories=[(path, inode + 1)])
    [(lack, problem)] = find_problems(other._replace(names=asked.names[1:]))
    assert (lack, problem.partition(": ")[2]) == ("log-dir", "is another directory there")


@pytest.mark.parametrize("package", ["storage", "cleaner_jobs", "compactor"])
def test_another_state_of_any_package_that_tasks_import_is_noticed(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions that tasks of a `map` stage call are those of `compactor`."""
    own = dict(package_versions())["source"]
    modules_in = executor_paths._modules_in

    def changed(_: Any, name: str) -> Iterator[tuple[str, bytes]]:
        yield from modules_in(_, name)
        if name == package:
            yield f"{name}/more.py", b""

    monkeypatch.setattr(executor_paths, "_modules_in", changed)
    executor_paths._digest.cache_clear()
    try:
        assert dict(package_versions())["source"] != own
    finally:
        executor_paths._digest.cache_clear()
