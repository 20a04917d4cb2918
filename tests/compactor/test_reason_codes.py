"""Every code is in one list, every error of ours has one, and the page shows the list."""

import ast
import errno
import importlib
import pickle
import pkgutil
import re
from pathlib import Path

import pytest

import cleaner_jobs
import compactor
import storage
from compactor.errors import (
    CleaningFailedError,
    ConfigError,
    LockLostError,
    RefusedError,
    UsageError,
)
from compactor.outcome.exit_codes import Terminated, ending_of_error
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError, LogCompactionError, UnsupportedFormatError
from storage.files.held_directories import DirectoryExchangedError
from tests.product_source import tree_of

ROOT = Path(compactor.__file__).parent.parent


def errors() -> list[type[LogCompactionError]]:
    """Every error class of the packages."""
    for package in (compactor, cleaner_jobs, storage):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in ("compactor.__main__", "compactor.airflow"):  # needs Airflow
                importlib.import_module(module.name)
    found, new = [LogCompactionError], [LogCompactionError]
    while new:
        new = [below for above in new for below in above.__subclasses__()]
        found += [error for error in new if not error.__module__.startswith("tests.")]
    return found


def test_the_code_of_every_error_is_listed() -> None:
    listed = {code.value for code in ReasonCode}
    assert [error for error in errors() if error.reason_code not in listed] == []


def test_every_refusal_says_which() -> None:
    """One without a code of its own is `refused`, which tells a scheduler nothing."""
    without = []
    for path in sorted((ROOT / "compactor").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name == "RefusedError" and len(node.args) + len(node.keywords) < 2:  # type: ignore[attr-defined]
                without.append(f"{path}:{node.lineno}")  # type: ignore[attr-defined]
    assert without == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), "wrong-configuration"),
        (UsageError("x"), "wrong-usage"),
        (RefusedError("x", ReasonCode.NO_ROOM), "no-room"),
        (LockLostError("x"), "lock-lost"),
        (CleaningFailedError("x"), "spark-failed"),
        (CorruptFileError("/x", 0, "x"), "damaged"),
        (UnsupportedFormatError("/x", 0, "x"), "unsupported-format"),
        (DirectoryExchangedError(errno.ESTALE, "x"), "changed-meanwhile"),
        (OSError(errno.ENOSPC, "x"), "no-room"),
        (OSError(errno.EACCES, "x"), "no-permission"),
        (OSError(errno.ENOENT, "x"), "not-found"),
        (OSError(errno.EMFILE, "x"), "too-few-open-files"),
        (OSError(errno.EIO, "x"), "input-output"),
        (OSError("x"), "input-output"),
        (KeyboardInterrupt(), "interrupted"),
        (Terminated(), "interrupted"),
        (KeyError("x"), "internal-error"),
    ],
)
def test_an_error_has_a_code(error: BaseException, code: str) -> None:
    assert ending_of_error(error).reason_code == code


def test_a_refusal_keeps_its_code_from_process_to_process() -> None:
    refused = pickle.loads(pickle.dumps(RefusedError("no", ReasonCode.LOCK_HELD)))  # noqa: S301
    assert (str(refused), refused.reason_code) == ("no", ReasonCode.LOCK_HELD)


def test_the_page_has_every_code_with_its_sentence() -> None:
    page = (ROOT / "docs/report.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", page, re.MULTILINE)
    codes = {code.value for code in ReasonCode}
    assert [row for row in rows if row[0] in codes] == [(c.value, c.sentence) for c in ReasonCode]
