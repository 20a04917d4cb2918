"""Claims of SECURITY.md that no other test holds."""

import ast
import os
import secrets
from pathlib import Path

import pytest

from cleaner_jobs.messages import load_task, task_file
from cleaner_jobs.tasks import rewrite_task, segment_facts
from storage.files.files import Disk, FileAttributes
from tests.compactor.small_rounds import GROUPS, logs_in
from tests.product_source import nodes, trees
from tests.support.local_round import LocalRound
from tests.support.made_log import log_of, plan_of, round_of

RUNS_DATA = {"eval", "exec", "compile", "system", "popen", "allow_pickle"}


def test_no_pickle_and_no_shell() -> None:
    imported, called = set(), set()
    # between a process and the one that it forked, through a pipe that nobody else can write to
    exempt = "compactor/host/second_process.py"
    assert exempt in trees()
    for path, node in nodes():
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
            imported |= names - {"pickle"} if path == exempt else names
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            is_regex = isinstance(node.func, ast.Attribute) and name == "compile"
            called.add("" if is_regex or name is None else name)
            for keyword in node.keywords:
                is_false = isinstance(keyword.value, ast.Constant) and not keyword.value.value
                if keyword.arg in ("shell", "allow_pickle") and not is_false:
                    called.add(keyword.arg)
    assert imported.isdisjoint({"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"})
    assert called.isdisjoint({*RUNS_DATA, "shell"})
    assert "load_task" in called  # the walk sees calls at all


def test_the_key_of_the_hash_is_of_this_run_and_of_the_systems_generator(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    randbits = secrets.randbits

    def draw(bits: int) -> int:
        drawn.append(randbits(bits))
        return drawn[-1]

    monkeypatch.setattr(secrets, "randbits", draw)
    used = []
    partition = logs_in(tmp_path)

    def look() -> None:
        (work_dir,) = (tmp_path / "work").iterdir()
        task = load_task(task_file(str(work_dir), "scan", 0))
        used.append(tuple(task["settings"][3:5]))

    local.before["resolve"] = look
    for _ in range(2):
        local.run(round_of(plan_of(partition, GROUPS, 12)), dry_run=True)
    assert used == [tuple(drawn[:2]), tuple(drawn[2:])]
    assert len(set(drawn)) == 4 and max(drawn).bit_length() > 32


def test_nobody_else_reads_what_is_in_work(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the umask, and though the log itself may be read by a group."""
    partition = logs_in(tmp_path)
    for path in partition.iterdir():
        path.chmod(0o640)
    modes: list[int] = []
    finish_like = segment_facts.finish_like

    def finish(descriptor: int, model: FileAttributes, disk: Disk) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        finish_like(descriptor, model, disk)

    for module in (segment_facts, rewrite_task):
        monkeypatch.setattr(module, "finish_like", finish)
    work_modes = []

    def look() -> None:
        (work_dir,) = (tmp_path / "work").iterdir()
        work_modes.append(work_dir.stat().st_mode & 0o777)

    local.before["resolve"] = look
    umask = os.umask(0)
    try:
        local.run(round_of(plan_of(partition, GROUPS, 12)))
    finally:
        os.umask(umask)
    assert work_modes == [0o700]
    assert len(modes) >= 3 and set(modes) == {0o600}
    assert log_of(partition, 0).stat().st_mode & 0o777 == 0o640
