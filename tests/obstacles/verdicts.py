"""One drawing: what the three commands say of a run that has these obstacles in its way."""

import os
import random
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from tests.obstacles.obstacles import FOUND_BY_READING, OBSTACLES, Obstacle, in_order
from tests.obstacles.place import Place
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.unprivileged import as_user, give

SECOND = 0.5  # the chance of a second obstacle


class Verdict(NamedTuple):
    """What was in the way, what was said, and what is wrong with it."""

    seed: int
    obstacles: tuple[str, ...]
    endings: dict[str, tuple[int, str]]  # of a run: as doctor and plan say, as it ended
    problems: tuple[str, ...]


class _Said(NamedTuple):
    doctor: Ended
    plan: Ended
    run: Ended
    before: object  # the state of the log directories
    behind_looks: object
    behind_run: object


def verdict_of(seed: int, root: Path, only: Obstacle | None = None) -> Verdict:
    """root: an empty directory that every user may enter. only: this one instead of those drawn."""
    chance = random.Random(seed)
    place = Place(root / "place", chance)
    for name in ("place", "home", "work", "tmp"):
        (root / name).mkdir()
        (root / name).chmod(0o777)
    place.build()
    give(place.root)
    drawn = chance.sample(OBSTACLES, 2 if chance.random() < SECOND else 1)
    names = [only] if only else in_order(drawn)
    with place.to_its_end:
        for obstacle in names:
            obstacle(place)
        said = as_user(lambda: _said(place, root))
    verdict = _judged(seed, tuple(one.__name__ for one in names), said)
    shutil.rmtree(root)
    return verdict


def _said(place: Place, root: Path) -> _Said:
    words = (*place.words, "--format", "json")
    environ = {
        "HOME": str(root / "home"),
        "XDG_CACHE_HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
    }
    os.chdir(root / "home")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        use_local_rounds(patch, root / "work")
        stack.enter_context(mock.patch.dict(os.environ, environ))
        stack.enter_context(mock.patch("tempfile.tempdir", None))
        for apply in place.patches:
            apply(stack)
        before = _state(place)
        doctor, plan = run_command("doctor", *words), run_command("plan", *words)
        behind_looks = _state(place)
        return _Said(doctor, plan, run_command("run", *words), before, behind_looks, _state(place))


def _state(place: Place) -> object:
    """Names, sizes, times of files: of what this user may see.

    Not the time of a directory, in which a run makes its lock file, and removes it.
    """
    return [
        (path, found.st_ino, found.st_mode, path.is_dir() or (found.st_size, found.st_mtime_ns))
        for log_dir in place.log_dirs
        for around, _, names in sorted(os.walk(log_dir))
        for path in (Path(around), *(Path(around, name) for name in sorted(names)))
        for found in _looked_up(path)
    ]


def _looked_up(path: Path) -> list[os.stat_result]:
    try:
        return [path.lstat()]
    except OSError:
        return []


def _judged(seed: int, names: tuple[str, ...], said: _Said) -> Verdict:
    problems = [
        f"{name}: an internal error: {ended.error}"
        for name, ended in zip(("doctor", "plan", "run"), said[:3], strict=True)
        if "internal error" in ended.error
    ]
    doctor, plan, run = (ended.summary for ended in said[:3])
    endings = {"run": _ending(run)}
    for name, told in (("doctor", doctor), ("plan", plan)):
        if "run_would_end" not in told:
            problems.append(f"{name} says nothing of a run: {told}")
            continue
        endings[name] = _ending(told["run_would_end"])
    is_found_later = run["reason_code"] == "logs-set-aside" and any(
        one.__name__ in names for one in FOUND_BY_READING
    )
    if len({*endings.values()}) > 1 and not is_found_later:
        problems.append(f"not equal: {endings}: {run.get('error') or _left(run)}")
    if endings.get("doctor") == endings["run"] and "log_dirs" in doctor:
        can_start = not any(one["forbids_start"] for one in run.get("start_problems", ()))
        is_fit = run["exit_code"] == 0 and can_start
        failed = [check for check in _checks(doctor) if check["grade"] == "fail"]
        if is_fit is bool(failed):
            problems.append(f"doctor's checks that fail: {failed}, and a run ends with {run}")
    if said.before != said.behind_looks:
        problems.append("doctor or plan changed something")
    if run["exit_code"] in (2, 3) and not run["changed"] and said.before != said.behind_run:
        problems.append("a run that was refused changed something, and does not say so")
    if run.get("error") and plan.get("run_would_end", {}).get("obstacles"):
        first = plan["run_would_end"]["obstacles"][0]
        if first["problem"] not in run["error"]:
            problems.append(f"plan names {first['problem']!r}, and the run {run['error']!r}")
    return Verdict(seed, names, endings, tuple(problems))


def _ending(document: dict[str, Any]) -> tuple[int, str]:
    return document["exit_code"], document["reason_code"]


def _left(run: dict[str, Any]) -> object:
    return [
        (log["topic"], log["partition"], log["status"], log["reason_code"], log["reason"])
        for log in run.get("logs", ())
        if log["status"] in ("failed", "set_aside", "set-aside")
    ]


def _checks(doctor: dict[str, Any]) -> list[dict[str, Any]]:
    checks = [check for log_dir in doctor["log_dirs"] for check in log_dir["checks"]]
    return [*checks, *doctor["run"]]
