"""A cached kernel is one of the source as it stands, with all that it was compiled from."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

from storage.kernels.kernel import allocating_kernel, kernel
from tests.support.private_mounts import python_with_mounts

PROJECT = Path(__file__).parents[3]

CONSTANT = "UNIT = 1\n"
HELPER = """
from storage.kernels.kernel import inlined
from {package}.constant import (
    UNIT,
)

@inlined
def times_unit(n):
    return n * UNIT
"""
KERNEL = """
from storage.kernels.kernel import kernel
from {package} import helper
from {package}.helper import times_unit

@kernel
def work(n):
    return times_unit(n)
"""
CALL = """
from {package}.work import work
print(work(7), sum(work.stats.cache_hits.values()))
"""
KILLED = """
import errno
import os
from numba.core.caching import IndexDataCacheFile
IndexDataCacheFile._save_data = lambda *_: os._exit(9)
"""
PACKAGE = "cut_pieces"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, source in (("constant", CONSTANT), ("helper", HELPER), ("work", KERNEL)):
        (folder / f"{name}.py").write_text(source.format(package=PACKAGE))
    return folder


def run(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package.parent), str(PROJECT)])
    return subprocess.run(
        [sys.executable, "-c", code.format(package=PACKAGE)],
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


def call(package: Path) -> str:
    """The kernel's answer for 7, and how often it was found in the cache, in a new process."""
    done = run(package, CALL)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def change(source: Path, old: str, new: str) -> None:
    """Edit a file and leave its time as it was."""
    stat = source.stat()
    source.write_text(source.read_text().replace(old, new))
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_kernel_is_compiled_once_for_each_state_of_what_goes_into_it(package: Path) -> None:
    """Else kernels of two states of the source would work on one log after an upgrade."""
    assert call(package) == "7 0"
    assert call(package) == "7 1"
    change(package / "constant.py", "1", "3")  # imported by what the kernel imports
    assert call(package) == "21 0"
    change(package / "helper.py", "n * UNIT", "n - UNIT")
    assert call(package) == "4 0"


def test_a_process_that_is_killed_while_it_keeps_a_kernel_leaves_none_of_another_source(
    package: Path,
) -> None:
    """numba's index, which names the file of the kernel, is written before that file."""
    assert call(package) == "7 0"
    change(package / "constant.py", "1", "3")
    assert run(package, KILLED + CALL).returncode == 9
    assert call(package) == "21 0"
    assert call(package) == "21 1"
    assert len(list(package.rglob("work*.nbc"))) == 1, "the file of the older source has gone"


@allocating_kernel
def sum_of_ones(count: int) -> int:
    return int(np.ones(count, np.int64).sum())


@kernel
def sum_of_zeros(count: int) -> int:
    return int(np.zeros(count, np.int64).sum())


def test_only_a_kernel_that_says_so_makes_arrays() -> None:
    """The others count no references, so what they made would never be freed."""
    assert sum_of_ones(3) == 3
    with pytest.raises(TypingError):
        sum_of_zeros(3)


FAILING = """
import builtins, os
from storage.kernels import kernel
of_python = builtins.open
def failing(path, *rest, **named):
    if "numba-cache" in str(path):
        raise OSError({number}, os.strerror({number}), path)
    return of_python(path, *rest, **named)
builtins.open = failing
from {{package}}.work import work
if {is_required}:
    kernel.require_keeping()
try:
    assert work(7) == 7
except OSError as error:
    assert {is_required} and error.errno == {number}, error
else:
    assert not {is_required}
"""


@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "ENOTDIR", "EIO", "EROFS", "EACCES"])
def test_a_cache_that_fails_is_an_error_only_of_who_compiles_for_it(
    package: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_required: bool
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(package.parent / "numba-cache"))
    done = run(package, FAILING.format(number=getattr(errno, name), is_required=is_required))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_half_a_file_in_the_cache_is_compiled_anew(package: Path) -> None:
    assert call(package) == "7 0"
    for kept in package.rglob("work*.nb?"):
        os.truncate(kept, kept.stat().st_size // 2)
    assert call(package) == "7 0"


@pytest.mark.parametrize("options", ["size=4k", "nr_inodes=2", "ro"])
def test_a_cache_without_room_is_no_error_of_the_work(package: Path, options: str) -> None:
    """On a real file system: 4 KiB take the directory, and not what is to be in it."""
    small = package.parent / "small"
    small.mkdir()
    code = (
        "import os, sys\n"
        f"os.environ['NUMBA_CACHE_DIR'] = sys.path.insert(0, {str(package.parent)!r}) or "
        f"{str(small / 'cache')!r}\n"
        f"{CALL.format(package=PACKAGE)}"
    )
    done = python_with_mounts([f"-t tmpfs -o {options} none {small}"], code)
    assert (done.returncode, done.stdout) == (0, "7 0\n"), done.stderr
