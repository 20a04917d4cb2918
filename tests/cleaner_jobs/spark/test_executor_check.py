"""What an executor answers, in a process that need not have this package, as it may not have it."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from cleaner_jobs.spark.executor_check import answering
from cleaner_jobs.tasks.executor_paths import Asked, package_versions

PROJECT = Path(__file__).parents[3]
EXECUTOR = """
import sys
sys.path += sys.argv[2:]  # as they are: no .pth file brings this package
import pickle
with open(sys.argv[1], "rb") as travelled:
    [(host, answer)] = pickle.load(travelled)(0)
print(answer)
"""


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "token").write_text("abc")
    log = tmp_path / "logs" / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"log")
    found = log.stat()
    sample = str(log), found.st_size, found.st_mtime_ns, found.st_ino
    directories = [(str(log.parent), log.parent.stat().st_ino)]
    token = str(tmp_path / "work" / "token")
    return Asked(
        token_path=token,
        token="abc",
        directories=directories,
        files=[sample],
        to_write=True,
        packages=package_versions(),
        names=[],
    )


def answer(asked: Asked, tmp_path: Path, *path: Path) -> Any:
    travelling = tmp_path / "work.pickle"
    dumps: Callable[[object], bytes] = cloudpickle.dumps
    travelling.write_bytes(dumps(answering(asked)))
    words = [EXECUTOR, travelling, sysconfig.get_path("purelib"), *path]
    command = [sys.executable, "-I", "-S", "-c", *map(str, words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_one_that_has_all_has_nothing_to_say(asked: Asked, tmp_path: Path) -> None:
    assert answer(asked, tmp_path, PROJECT) == []


def test_one_without_the_package_says_so(asked: Asked, tmp_path: Path) -> None:
    """But for a file beside the code, which an installation that leads here brings."""
    [(lack, problem)] = answer(asked, tmp_path)
    assert lack == "python"
    assert problem.startswith("ModuleNotFoundError: No module named 'cleaner_jobs")


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("gone", "work/token: No such file or directory"),
        ("another's", "work: is another directory there"),
    ],
)
def test_a_work_directory_of_its_own(
    asked: Asked, tmp_path: Path, state: str, problem: str
) -> None:
    os.remove(asked.token_path)
    if state == "another's":
        Path(asked.token_path).write_text("xyz")
    assert answer(asked, tmp_path, PROJECT) == [["work-dir", f"{tmp_path}/{problem}"]]


def test_other_packages_than_the_driver_has(asked: Asked, tmp_path: Path) -> None:
    versions = dict(asked.packages)
    others = [("cramjam", "9.9"), ("source", "0" * 64), ("numpy", versions["numpy"])]
    (first, second) = answer(asked._replace(packages=others), tmp_path, PROJECT)
    here = versions["cramjam"]
    assert first == ["python", f"cramjam {here}, where the driver has 9.9"]
    other = f"{PROJECT}: the packages of this project are not those of the driver"
    assert second == ["python", other]


def test_log_directories_that_are_not_there_or_others(asked: Asked, tmp_path: Path) -> None:
    [(path, *_)] = asked.files
    Path(path).write_bytes(b"longer")
    (problem,) = answer(asked, tmp_path, PROJECT)
    assert problem == ["log-dir", f"{path}: is another file there"]
    os.remove(path)
    (problem,) = answer(asked, tmp_path, PROJECT)
    assert problem == ["log-dir", f"{path}: No such file or directory"]
