"""Which end gives which code (design, the command line), and how an error reads."""

import errno

import pytest

from compactor.errors import CleaningFailedError, ConfigError, RefusedError, UsageError
from compactor.outcome.exit_codes import (
    ExitCode,
    HungUp,
    Terminated,
    ending_of_error,
    ending_of_logs,
    error_line,
)
from compactor.outcome.round_report import LogStatus
from storage.errors import CorruptFileError, UnsupportedBackendError

CLEANED, WOULD, PASSED, ASIDE, FAILED = (
    LogStatus.CLEANED,
    LogStatus.WOULD_CLEAN,
    LogStatus.PASSED_OVER,
    LogStatus.SET_ASIDE,
    LogStatus.FAILED,
)


@pytest.mark.parametrize(
    ("statuses", "code", "why"),
    [
        ([], 0, "nothing-to-do"),
        ([PASSED], 0, "nothing-to-do"),
        ([CLEANED, PASSED], 0, "done"),
        ([WOULD], 0, "done"),
        ([CLEANED, ASIDE], 4, "logs-set-aside"),
        ([ASIDE], 4, "logs-set-aside"),
        ([WOULD, ASIDE], 4, "logs-set-aside"),
        ([CLEANED, FAILED], 4, "logs-failed"),
        ([FAILED], 1, "logs-failed"),
        ([FAILED, ASIDE, PASSED], 1, "logs-failed"),
    ],
)
def test_how_a_round_ends_by_its_logs(statuses: list[LogStatus], code: int, why: str) -> None:
    assert ending_of_logs(statuses) == (code, why)
    with_condition = (1, "logs-failed") if code == 1 else (5, "condition")
    assert ending_of_logs(statuses, is_condition_met=True) == with_condition
    with_deletion = "done" if why == "nothing-to-do" else why
    assert ending_of_logs(statuses, deletes=True) == (code, with_deletion)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("x.toml: no"), 2, "x.toml: no"),
        (UsageError("--as-of x: no."), 2, "--as-of x: no"),
        (RefusedError("locked"), 3, "locked"),
        (UnsupportedBackendError("s3://x: no promise"), 3, "s3://x: no promise"),
        (CleaningFailedError("no Java"), 1, "no Java"),
        (CorruptFileError("/d/0.log", 7, "bad\nCRC"), 1, "/d/0.log, byte 7: bad CRC"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/w/x"),
            1,
            "/w/x: No space left on device",
        ),
        (
            OSError(errno.EXDEV, "Cross-device link", "/a", None, "/b"),
            1,
            "/a -> /b: Cross-device link",
        ),
        (KeyError("x"), 1, "internal error: KeyError: 'x'"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Terminated(), 143, "terminated"),
        (HungUp(), 129, "hung up: the terminal or connection is gone"),
    ],
)
def test_an_error_has_a_code_and_one_line(error: BaseException, code: int, line: str) -> None:
    assert ending_of_error(error).exit_code == code
    assert error_line(error) == line


def test_a_java_stack_trace_is_not_shown() -> None:
    """A foreign error of many lines keeps its first."""
    text = "An error occurred while calling o33.collect.\n: java.lang.Boom\n\tat a.b.C(D.java:7)"
    assert error_line(RuntimeError(text)) == (
        "internal error: RuntimeError: An error occurred while calling o33.collect"
    )


def test_every_code_has_a_word() -> None:
    assert [code.status for code in ExitCode] == [
        "ok",
        "failed",
        "usage",
        "refused",
        "partial",
        "condition",
        "interrupted",
        "interrupted",
        "interrupted",
    ]
