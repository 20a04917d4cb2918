"""Kernels beside a source: used where nothing can be written, refused where they do not fit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.kernels.test_kernel import CALL, PACKAGE, PROJECT, call, package

__all__ = ["package"]
WITHOUT_USER_CACHE = """
from numba.core import caching
def refused(self):
    raise PermissionError(13, "Permission denied", self.get_cache_path())
caching._CacheLocator.ensure_cache_path = refused
"""


def call_read_only(package: Path) -> str:
    """As call, where no cache can be written to, neither beside the source nor the user's own."""
    path = os.pathsep.join([str(package.parent), str(PROJECT)])
    code = WITHOUT_USER_CACHE + CALL.format(package=PACKAGE)
    environ = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_kept_beside_the_source_is_used_where_nothing_can_be_written(
    package: Path,
) -> None:
    assert call(package) == "7 0"  # compiled, and kept beside the source
    kept = sorted(path.name for path in (package / "__pycache__").iterdir())
    assert call_read_only(package) == "7 1"
    assert sorted(path.name for path in (package / "__pycache__").iterdir()) == kept


def test_a_cache_directory_that_is_named_is_the_only_one_that_is_read(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(package) == "7 0"  # compiled, and kept beside the source
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    assert call(package) == "7 0"
    assert call(package) == "7 1"


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        ("+no-such-thing", "this processor lacks no-such-thing"),
        ("+sse2,-avx,+neither,+nor", "this processor lacks neither, nor"),
    ],
)
def test_a_processor_without_what_kernels_are_compiled_for_is_refused(
    features: str, problem: str
) -> None:
    environ = os.environ | {"NUMBA_CPU_NAME": "x86-64-v9", "NUMBA_CPU_FEATURES": features}
    code = "import storage.kernels.kernel"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=PROJECT, capture_output=True, text=True
    )
    told = "storage.errors.UnfitProcessorError: kernels are compiled for x86-64-v9, " + problem
    assert done.stderr.splitlines()[-1] == told
