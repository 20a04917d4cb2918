"""The files of conf/ that start runs: what they start is taken, and systemd finds no fault.

The line of cron is carried out by a shell with the environment of its file, as cron does it; no
cron runs here, and the hour is not tested.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compactor.command_line.command import Request
from compactor.command_line.commands import app
from compactor.command_line.parser import parse

CONF = Path(__file__).parents[1] / "conf"
INSTALLED = "/opt/log-compactor/.venv/bin/compactor"
SERVICES = ("log-compactor.service", "log-compactor-plan.service")
COMPACTOR = Path(sys.executable).parent / "compactor"


def _unit(name: str) -> str:
    return (CONF / "systemd" / name).read_text(encoding="utf-8")


def _is_taken(words: list[str]) -> bool:
    return isinstance(parse(app, words), Request)


def _cron() -> tuple[dict[str, str], list[str], str]:
    """Settings, the five fields and the user, the command."""
    lines = (CONF / "cron" / "log-compactor").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    *settings, plan, entry = lines
    *words, silenced = shlex.split(plan.split(" ", 6)[6])
    assert _is_taken(words[1:]) and silenced == ">/dev/null"
    fields = entry.split(" ", 6)
    return dict(line.split("=", 1) for line in settings), fields[:6], fields[6]


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_starts_is_taken(name: str) -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", _unit(name), re.M)
    program, *words = shlex.split(line)
    assert program == INSTALLED
    assert _is_taken(words)
    writable = re.findall(r"^ReadWritePaths=(.*)$", _unit(name), re.M)[0].split()
    written = [os.path.dirname(words[words.index("--metrics") + 1])]
    written += [words[1]] if words[0] == "run" else []  # a plan writes no log
    assert sorted(writable) == sorted(written)


def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze on this machine")
    for name in (*SERVICES, *(service.replace(".service", ".timer") for service in SERVICES)):
        (tmp_path / name).write_text(_unit(name).replace(INSTALLED, str(COMPACTOR)))
    paths = [str(tmp_path / name) for name in os.listdir(tmp_path)]
    words = ["systemd-analyze", "verify", "--man=no", *paths]
    verified = subprocess.run(words, capture_output=True, text=True, check=False)
    about_ours = [line for line in verified.stderr.splitlines() if "log-compactor" in line]
    assert about_ours == []


def test_the_line_of_cron_is_carried_out_by_a_shell(log_dir: Path, tmp_path: Path) -> None:
    settings, fields, command = _cron()
    assert len(fields) == 6 and "%" not in command  # which cron takes for the end of a line
    words = shlex.split(command)
    assert _is_taken(words[words.index("$COMPACTOR") + 1 :])
    (tmp_path / "reports").mkdir()
    line = command.replace("/backup/kafka", f"{log_dir} --dry-run")
    line = line.replace("/var/log/log-compactor", str(tmp_path / "reports"))
    line = line.replace("/var/lib/prometheus/node-exporter", str(tmp_path))
    cache = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
    environment = {**settings, **cache, "COMPACTOR": str(COMPACTOR), "HOME": str(tmp_path)}
    done = subprocess.run(
        [settings["SHELL"], "-c", line],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")  # so no mail is sent
    assert (tmp_path / "reports" / "last.json").exists()
    assert (tmp_path / "compactor-run.prom").exists()


def test_the_airflow_operator_knows_which_commands_have_no_report() -> None:
    """By its source, since it can be imported beside Airflow alone."""
    module = ast.parse((CONF.parent / "compactor" / "airflow.py").read_text(encoding="utf-8"))
    known = next(
        ast.literal_eval(found.value)
        for found in module.body
        if isinstance(found, ast.Assign) and ast.unparse(found.targets[0]) == "_WITHOUT_REPORT"
    )
    command: Any = app
    parts = {f"log {name}": part for name, part in command.commands["log"].commands.items()}
    commands = {**command.commands, **parts}
    about_log_dirs = commands.keys() - {"completion", "log"}
    without = {
        name
        for name in about_log_dirs
        if not any("--report" in parameter.opts for parameter in commands[name].params)
    }
    assert without == set(known)
