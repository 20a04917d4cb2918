"""Files that we read back, with values exchanged for others: a typed error, or a value."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor.api import saved_plans
from compactor.copying import manifest
from compactor.host import run_history
from compactor.host.run_history import PastRun
from compactor.log_dirs import set_aside_memory
from compactor.log_dirs.directory_state import MANIFEST
from compactor.log_dirs.kept_files import FileMark
from compactor.log_dirs.set_aside_memory import MemoryContents, SetAside
from compactor.originals import kept_manifest
from compactor.originals.kept_manifest import KeptRun, KeptStep, LogBefore
from compactor.outcome.json_values import to_json
from compactor.planning import saved_plan
from compactor.planning.saved_plan import ReviewedLog, ReviewedRetention, SavedPlan, SegmentMark
from compactor.settings.rules import Rules
from compactor.verification import run_reports
from compactor.views.merged_table import merged_document, merged_view
from compactor.watching.merged_reports import merged_reports
from storage.errors import LogCompactionError
from storage.files.local import LOCAL

TIMES = 600  # of each kind of file
CHECKSUM = "0123456789abcdef"
OTHERS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63, 2**70, -(2**64), 1.5, float("inf"), float("nan")),
    *("", "x", "1", "\ud800", "\0", [], [1], [[]], [None], {}, {"x": 1}, {"x": None}, [{}]),
)
MARK = SegmentMark(0, 100, 5, 7)
_LOG: dict[str, Any] = {
    "log_dir": "/d",
    "topic": "orders",
    "partition": 0,
    "log_start_offset": 0,
    "first_dirty_offset": 3,
    "first_uncleanable_offset": 9,
    "delete_retention_ms": 10,
    "index_interval_bytes": 4096,
    "segment_index_bytes": 1000,
    "segment_bytes": 10_000,
    "segments": (MARK, SegmentMark(10, 100, 5, 7)),
}
PLAN = SavedPlan(
    made_by="0.1.0",
    saved_at_ms=1,
    as_of_ms=2,
    is_as_of_given=False,
    log_dirs=("/d",),
    kafka={"/d": "4.3"},
    rules=saved_plans._rules_document(
        Rules(settings={"cleanup.policy": "compact"}, max_logs=3, include="o.*")
    ),
    expected={"seconds": 1.5},
    logs=(ReviewedLog(**_LOG),),
    retention=(
        ReviewedRetention(
            **{name: _LOG[name] for name in ("log_dir", "topic", "partition", "segments")},
            retention_ms=1,
            retention_bytes=None,
        ),
    ),
)
REPORT = {
    "schema_version": 1,
    "command": "run",
    "status": "ok",
    "exit_code": 0,
    "reason_code": "done",
    "run_id": "cafe0123",
    "host": "h",
    "changed": True,
    "dry_run": False,
    "started_at": "2026-11-23T01:18:52.000Z",
    "seconds": 1.5,
    "as_of_ms": 5,
    "horizons_from_ms": 5,
    "error": "none",
    "log_dirs": [{"path": "/d"}],
    "logs": [{"topic": "orders", "partition": 0, "delete_retention_ms": 10}],
    "totals": {
        "logs": {"cleaned": 1, "failed": 0},
        "bytes_before": 10,
        "bytes_after": 4,
        "records": {"read": 5, "dropped": {"aborted": 1}},
    },
}
FILE = FileMark("00000000000000000000.log", 5, CHECKSUM)


def read_plan(path: Path) -> object:
    found = saved_plan.parse(path.read_bytes(), str(path))
    return saved_plans.rules_of(found, str(path)), found.ceilings, replace(found)


def read_reports(path: Path) -> object:
    merged = merged_reports([str(path), str(path)], LOCAL)
    return merged_view(merged, 80), json.dumps(to_json(merged_document(merged))), merged.is_changed


def read_history(path: Path) -> object:
    pace = run_history.machine_pace(path.parent, 10)
    return pace.bytes_within(60.0), pace.seconds(5)


def _copy_manifest(tmp_path: Path) -> bytes:
    files = (FileMark("orders-0/00000000000000000000.log", 5, CHECKSUM),)
    made = manifest.Manifest("/d", "x", "0.1.0", "2026", "why", {"a-1": "why"}, ("b-0",), files)
    manifest.write(str(tmp_path), made, LOCAL)
    return (tmp_path / MANIFEST).read_bytes()


SET_ASIDE = MemoryContents({("orders", 0): SetAside("damaged", 1, 5, 6, "digest", "id")})
STEP = KeptStep(1, (FILE,), (FILE,), 5, 3, 4)
Reader = Callable[[Path], object]
KINDS: dict[str, tuple[str, Callable[[Path], bytes], Reader]] = {  # name, document, reader
    "plan": ("p.json", lambda _: saved_plan.document(PLAN), read_plan),
    "copy": (MANIFEST, _copy_manifest, lambda p: manifest.read(str(p.parent), LOCAL)),
    "kept run": (
        "r.json",
        lambda _: kept_manifest.document(KeptRun("x", 5, ("/d",))),
        lambda p: kept_manifest.parse(KeptRun, p.read_bytes(), str(p)),
    ),
    "kept log": (
        "l.json",
        lambda _: kept_manifest.document(LogBefore("id", (FILE,), 5, 3, 0)),
        lambda p: kept_manifest.parse(LogBefore, p.read_bytes(), str(p)),
    ),
    "kept step": (
        "s.json",
        lambda _: kept_manifest.document(STEP),
        lambda p: kept_manifest.parse(KeptStep, p.read_bytes(), str(p)),
    ),
    "set aside": (
        "a.json",
        lambda _: set_aside_memory.encode(SET_ASIDE),
        lambda p: set_aside_memory.decode(p.read_bytes(), str(p)),
    ),
    "history": (
        "runs.json",
        lambda _: json.dumps([PastRun(5, 1.5, 2.5, 100_000_000)] * 2).encode(),
        read_history,
    ),
    "report": ("o.json", lambda _: json.dumps(REPORT).encode(), read_reports),
    "run report": (
        "u.json",
        lambda _: json.dumps(REPORT).encode(),
        lambda p: run_reports.read_run_report(str(p)),
    ),
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every value within a document."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else ()
    for name, each in enumerate(value) if isinstance(value, list) else inner:
        yield from _places(each, (*path, name))


def _edited(document: Any, rng: random.Random) -> Any:
    edited = copy.deepcopy(document)
    *way, last = rng.choice(list(_places(edited)))
    at = edited
    for name in way:
        at = at[name]
    if rng.random() < 0.1:
        del at[last]
    else:
        at[last] = rng.choice(OTHERS)
    return edited


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_as_it_was_written_is_read(kind: str, tmp_path: Path) -> None:
    name, make, read = KINDS[kind]
    (tmp_path / name).write_bytes(make(tmp_path))
    assert read(tmp_path / name) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_file_is_a_typed_error_or_a_value(kind: str, tmp_path: Path) -> None:
    name, make, read = KINDS[kind]
    document, rng = json.loads(make(tmp_path)), random.Random(kind)
    path = tmp_path / name
    for edited in [*OTHERS, *(_edited(document, rng) for _ in range(TIMES))]:
        path.write_text(json.dumps(edited))
        try:
            read(path)
        except LogCompactionError:
            continue
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} {error}: {edited}") from error


@pytest.mark.parametrize("kind", KINDS)
def test_brackets_without_end_are_a_typed_error_or_a_value(kind: str, tmp_path: Path) -> None:
    name, _, read = KINDS[kind]
    (tmp_path / name).write_text("[" * 100_000)
    try:
        read(tmp_path / name)
    except LogCompactionError as error:
        assert str(tmp_path) in str(error)
