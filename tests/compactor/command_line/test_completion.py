"""Completion in real shells, as far as they are installed: commands, options, directories, logs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compactor.plan_logs import Shape, build
from tests.support.local_command import run_command

BIN = Path(sys.executable).parent
# What a person would type up to the key, and what the shell then has to offer.
TYPED = [
    ("compactor expl", "explain"),
    ("compactor run --dry", "--dry-run"),
    ("compactor verify {data} ord", "orders-0"),
    ("compactor explain {data} ord", "orders-0"),
    ("compactor configs {data} cust", "customers"),
    ("compactor plan {root}/da", "{data}/"),
]
# Each is told the words as the shell itself would tell them.
BASH = """
source <({bin}/compactor --completion bash)
COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_compactor_completion compactor
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
autoload -Uz compinit && compinit -u -d "$HOME/dump"
_describe() {{ print -rl -- ${{(P)3}} }}
compadd() {{ print -rl -- ${{(P)@[-1]}} }}
source <({bin}/compactor --completion zsh)
words=({typed}); CURRENT=${{#words}}
_compactor_completion
"""
FISH = """
{bin}/compactor --completion fish | source
complete -C '{typed}'
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    build(tmp_path / "data", Shape("orders"), Shape("customers"))
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "script", "typed", "offered"),
    [
        *(("bash", BASH, *pair) for pair in TYPED),
        *(("zsh", ZSH, *pair) for pair in TYPED[2:4]),
        *(("fish", FISH, *pair) for pair in TYPED[2:4]),
    ],
)
def test_a_shell_offers_it(root: Path, shell: str, script: str, typed: str, offered: str) -> None:
    names = {"root": root, "data": root / "data"}
    text = script.format(bin=BIN, typed=typed.format(**names))
    environ = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(root)}
    try:
        ended = subprocess.run(
            [shell, "-c", text], capture_output=True, text=True, env=environ, timeout=60
        )
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    said = [line.split("\t")[0].strip() for line in ended.stdout.splitlines()]
    assert any(offered.format(**names) in line for line in said), (ended.stdout, ended.stderr)


def test_a_shell_that_is_not_known_is_told() -> None:
    ended = run_command("--completion", "tcsh")
    assert ended.code == 2
    assert "'tcsh' is not one of bash, zsh, fish" in ended.error
