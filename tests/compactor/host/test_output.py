"""Standard streams that are closed, full or of another encoding: a command does its work, and its
exit code tells how that ended."""

import json
import subprocess
import sys

import pytest


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    script = f"from compactor.host.output import *\n{code}"
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


def run_redirected(to: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with its streams there, and buffered, as they are unless PYTHONUNBUFFERED is set."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {to}', "bash", sys.executable, *words],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("to", [TO_FULL, TO_NOBODY])
def test_errors_that_nobody_takes_are_no_error(to: str) -> None:
    code = (
        "from compactor.host.output import *; import time; time.sleep(0.2)\n"  # until it has gone
    )
    code += "print_error('a'); print_error('b'); print_line('c'); sys.exit(3)"
    result = run_redirected(to, "-c", code)
    assert (result.returncode, result.stdout) == (3, "c\n")


def test_an_error_that_cannot_be_printed_still_ends_in_its_code_and_summary() -> None:
    result = run_redirected(TO_FULL, "-m", "compactor", "plan", "/nonexistent")
    summary = json.loads(result.stdout)
    assert result.returncode == summary["exit_code"] == 2


@pytest.mark.parametrize(
    ("words", "code"), [(["plan", "/nonexistent"], 2), (["--version"], 1), (["--help"], 1)]
)
def test_output_that_a_full_disk_does_not_take_is_an_error_in_one_line(
    words: list[str], code: int
) -> None:
    result = run_redirected("> /dev/full", "-m", "compactor", *words)
    *_, last = result.stderr.splitlines()
    told = "compactor: standard output: No space left on device. The command itself has ended."
    assert (result.returncode, last) == (code, told)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_reason_to_fail(closed: str) -> None:
    result = run_redirected(closed, "-m", "compactor", "plan", "/nonexistent")
    assert (result.returncode, "Traceback" in result.stderr) == (2, False)
    assert run_redirected(closed, "-m", "compactor", "--version").returncode == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_stream(closed: str) -> None:
    """What Java writes to standard output would go to a segment or a lock."""
    code = "import os, subprocess; from compactor.host.output import *; open_standard_streams(); "
    code += "opened = os.open('/dev/null', os.O_RDONLY); "
    code += "child = subprocess.run(['sh', '-c', 'true <&0 >&1 2>&2 && echo a >&1']); "
    code += "sys.exit(9 if opened > 2 and child.returncode == 0 else 1)"
    assert run_redirected(closed, "-c", code).returncode == 9


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_shows_escapes(encoding: str) -> None:
    result = run('forgive_encodings(); print_line("a\\u2192b\\udcff")', PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stdout, result.stderr) == (0, "a\\u2192b\\udcff\n", "")


def test_libraries_do_not_log_tracebacks() -> None:
    code = 'import logging; logging.getLogger("py4j").error("a"); logging.error("b")'
    code += '; logging.getLogger("compactor.api").warning("c")'
    assert run(f"silence_libraries(); {code}").stderr == ""
    assert run(code).stderr != ""
