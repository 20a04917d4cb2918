"""What is read back, by what reads it, with one sound file of each."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compactor.copying import manifest as copies
from compactor.host.run_history import machine_pace
from compactor.log_dirs.directory_state import MANIFEST
from compactor.log_dirs.kept_files import FileMark
from compactor.log_dirs.set_aside_memory import (
    MemoryContents,
    SetAside,
    WaitingLog,
    decode,
    encode,
)
from compactor.originals import kept_manifest as kept
from compactor.planning.saved_plan import parse
from compactor.verification.run_reports import read_run_reports
from compactor.watching.merged_reports import bad_logs_of, log_dirs_of, merged_reports, of_each
from storage.files.local import LOCAL
from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.support.local_command import run_command, use_local_rounds

_MARK = FileMark("00000000000000000000.log", 10, "0123456789abcdef")
_ASIDE = SetAside("damaged", 2, 1, 2, "digest", "id")


class Target(NamedTuple):
    sound: bytes
    read: Callable[[Path], object]  # of a file


def _bytes(read: Callable[[bytes, str], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_bytes(), str(path))


def _kept(kind: Any) -> Callable[[Path], object]:
    return _bytes(partial(kept.parse, kind))


def _merge(path: Path) -> None:
    merged = merged_reports([str(path)], LOCAL)
    for _, document in merged.reports:
        of_each("", document), log_dirs_of(document), bad_logs_of(document)


def _merge_by_command(path: Path) -> None:
    """As `compactor report` shows it, with every form of report."""
    for form in ("json", "html", "csv"):
        ended = run_command("report", path, "--report", path.with_suffix(f".out.{form}"))
        assert ended.code in (0, 1, 2, 3, 4, 5, 130, 143), ended.code
        if "internal error" in ended.error:
            raise AssertionError(ended.error)


def _copy(path: Path) -> None:
    path.rename(path.parent / MANIFEST)
    copies.read(str(path.parent), LOCAL)


def _history(path: Path) -> None:
    path.rename(path.parent / "runs.json")
    machine_pace(path.parent, 1000).seconds(1 << 30)


def targets(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Target]:
    """folder: empty, for a log directory and what commands write of it."""
    (folder / "rounds").mkdir()
    use_local_rounds(patch, folder / "rounds")
    log_dir = build(folder / "log").parent
    clean_shutdown.write(str(log_dir))
    compacted = ("--include", "orders", "--set", "cleanup.policy=compact")
    made = run_command("plan", log_dir, *compacted, "--save", folder / "plan.json")
    assert made.code == 0, made.error
    planned = run_command("plan", log_dir, *compacted, "--report", folder / "planned.json")
    assert planned.code == 0, planned.error
    ran = run_command("run", log_dir, *compacted, "--report", folder / "ran.json")
    assert ran.code == 0, ran.error
    known = MemoryContents({("t", 0): _ASIDE}, {"bad": 5}, {("u", 1): WaitingLog("no-topic-id", 6)})
    manifest = copies.Manifest(
        "/d", "r", "1", "2026-01-01", None, {"t-0": "gone"}, ("u-1",), (_MARK,)
    )
    copies.write(str(folder), manifest, LOCAL)
    before = kept.LogBefore("id", (_MARK,), 5, 3, None)
    report, plan_report = ((folder / f"{n}.json").read_bytes() for n in ("ran", "planned"))
    return {
        "plan": Target((folder / "plan.json").read_bytes(), _bytes(parse)),
        "kept run": Target(kept.document(kept.KeptRun("r", 5, ("/d",))), _kept(kept.KeptRun)),
        "kept log": Target(kept.document(before), _kept(kept.LogBefore)),
        "kept step": Target(
            kept.document(kept.KeptStep(1, (_MARK,), (_MARK,), 5)), _kept(kept.KeptStep)
        ),
        "copy": Target((folder / MANIFEST).read_bytes(), _copy),
        "set aside": Target(encode(known), _bytes(decode)),
        "history": Target(json.dumps([[5, 1.0, 2.0, 10**8]] * 3).encode(), _history),
        "report": Target(report, _merge),
        "report of a plan": Target(plan_report, _merge),
        "report as shown": Target(report, _merge_by_command),
        "report of a run": Target(report, lambda path: read_run_reports([str(path)])),
    }
