"""The machine: too few descriptors are refused before anything begins, and our version is known."""

import json
import os
import resource
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from compactor.host import machine
from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.support.file_states import state_of


def limited(words: str, limit: str) -> subprocess.CompletedProcess[str]:
    """Python with these words, in a shell with `ulimit` and those."""
    line = f'ulimit {limit} && exec "{sys.executable}" {words}'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True)


@pytest.mark.parametrize("words", ["", "--dry-run"])
def test_a_run_that_may_open_too_few_is_refused(tmp_path: Path, words: str) -> None:
    log_dir = build(tmp_path / "log").parent
    clean_shutdown.write(str(log_dir))
    before = state_of(log_dir)
    done = limited(f"-m compactor run {log_dir} {words}", "-n 256")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["status"]) == (3, "refused")
    (line,) = done.stderr.splitlines()
    assert line.startswith("compactor: no more than 256 files may be open at once (ulimit -n), ")
    assert "LimitNOFILE=4096" in line and line.endswith("Nothing was changed.")
    assert state_of(log_dir) == before and not (log_dir / ".lock").exists()


def test_the_soft_limit_is_raised_as_far_as_it_may_be() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = "from compactor.command_line import cli; import resource; cli.main(['--version']); "
    code += "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    done = limited(f'-c "{code}"', "-Sn 200")
    assert done.stdout.splitlines()[-1] == str(hard)


def test_the_error_for_a_limit_that_is_met_later_gives_its_number(tmp_path: Path) -> None:
    code = "import os; from compactor.outcome.exit_codes import error_line\n"
    code += "try:\\n    while True: os.open('/dev/null', os.O_RDONLY)\\n"
    code += "except OSError as error: print(error_line(error))"
    script = tmp_path / "script.py"
    script.write_text(code.replace("\\n", "\n"))
    done = limited(str(script), "-n 40")
    told = "/dev/null: Too many open files: no more than 40 may be at once (ulimit -n)\n"
    assert (done.stdout, done.stderr) == (told, "")
    assert os.listdir(tmp_path) == ["script.py"]


PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_the_distribution_is_the_one_that_this_project_makes() -> None:
    assert tomllib.loads(PROJECT.read_text())["project"]["name"] == machine.DISTRIBUTION


def test_source_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", lambda name: f"{name} 7")
    machine.version.cache_clear()
    assert machine.version() == "log-compactor 7"
    machine.version.cache_clear()
    monkeypatch.setattr(metadata, "version", not_installed)
    assert machine.version() == "unknown"
    machine.version.cache_clear()
