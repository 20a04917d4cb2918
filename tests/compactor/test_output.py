"""Standard output that is closed, or of another encoding, is no reason to fail; nor is standard
error that takes nothing."""

import json
import subprocess
import sys

import pytest


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    script = f"from compactor.output import *\n{code}"
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -c '{script}' | head -n 1; exit ${{PIPESTATUS[0]}}"],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
    )


def test_a_reader_that_has_gone_is_no_error() -> None:
    result = run("for i in range(100000): print_line(str(i))")
    assert (result.returncode, result.stdout, result.stderr) == (0, "0\n", "")


TO_FULL = "2> /dev/full"
TO_NOBODY = "2> >(exec 0<&-)"


def run_with_errors(to: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with standard error there, and buffered, as it is unless PYTHONUNBUFFERED is set."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {to}', "bash", sys.executable, *words],
        env={"PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("to", [TO_FULL, TO_NOBODY])
def test_errors_that_nobody_takes_are_no_error(to: str) -> None:
    code = "from compactor.output import *; import time; time.sleep(0.2)\n"  # until it has gone
    code += "print_error('a'); print_error('b'); print_line('c'); sys.exit(3)"
    result = run_with_errors(to, "-c", code)
    assert (result.returncode, result.stdout) == (3, "c\n")


def test_an_error_that_cannot_be_told_still_ends_in_its_code_and_verdict() -> None:
    result = run_with_errors(TO_FULL, "-m", "compactor", "plan", "/nonexistent")
    verdict = json.loads(result.stdout)
    assert result.returncode == verdict["exit_code"] == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_shows_escapes(encoding: str) -> None:
    result = run('forgive_encodings(); print_line("a\\u2192b\\udcff")', PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stdout, result.stderr) == (0, "a\\u2192b\\udcff\n", "")


def test_libraries_do_not_log_tracebacks() -> None:
    code = 'import logging; logging.getLogger("py4j").error("a"); logging.error("b")'
    assert run(f"silence_libraries(); {code}").stderr == ""
    assert run(code).stderr != ""
