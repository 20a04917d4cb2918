"""Standard output that is closed, or of another encoding, is no reason to fail."""

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


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_shows_escapes(encoding: str) -> None:
    result = run('forgive_encodings(); print_line("a\\u2192b\\udcff")', PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stdout, result.stderr) == (0, "a\\u2192b\\udcff\n", "")


def test_libraries_do_not_log_tracebacks() -> None:
    code = 'import logging; logging.getLogger("py4j").error("a"); logging.error("b")'
    assert run(f"silence_libraries(); {code}").stderr == ""
    assert run(code).stderr != ""
