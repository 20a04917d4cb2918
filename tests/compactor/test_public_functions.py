"""What every public function does in a copy that was never finished, or that nobody may change.

The functions are those of `__all__`: one that comes later is in a list here, or fails a test.
"""

from collections.abc import Callable, Iterator
from inspect import isfunction, isgenerator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import compactor
from compactor import (
    Log,
    LogManager,
    LogOptions,
    api,
    append_table,
    partition_dirs,
    read_table,
)
from storage.formats.copy_marks import CopyMarkedError
from storage.log.scheduler import ManualScheduler
from tests.compactor.api.test_copies import RULES
from tests.compactor.log_dirs.test_directory_state import LOG, MARKS, made, marked
from tests.support.file_states import state_of

__all__ = ["made", "marked"]  # fixtures
SURE = api.ChangeOptions(rules=RULES, only_replica=True)
NAME = LOG[1]
RECORD = api.NewRecord(b"a", b"a")
Call = Callable[[Path], object]  # of the directory in which the fixtures are


def kept(root: Path) -> Path:
    return next((root / "kept").iterdir())


CHANGING: dict[str, Call] = {
    "run": lambda root: api.run(root / "copy", RULES, api.RunOptions(in_process=True)),
    "recover": lambda root: api.recover(root / "copy", RULES),
    "undo": lambda root: api.undo(kept(root)),
    "log_roll": lambda root: api.log_roll(root / "copy", NAME, SURE),
    "log_delete_records": lambda root: api.log_delete_records(root / "copy", NAME, 4, SURE),
    "log_truncate": lambda root: api.log_truncate(root / "copy", NAME, 1, SURE),
    "log_append": lambda root: api.log_append(root / "copy", NAME, [RECORD], "none", SURE),
    "log_abort": lambda root: api.log_abort(root / "copy", NAME, 7, SURE),
    "log_move": lambda root: api.log_move(root / "copy", NAME, str(root / "other"), SURE),
}
READING: dict[str, Call] = {
    "plan": lambda root: api.plan(root / "copy", RULES),
    "explain": lambda root: api.explain(root / "copy", NAME, RULES),
    "configs": lambda root: api.configs(root / "copy", None, RULES),
    "inspect": lambda root: api.inspect(
        root / "copy", (), RULES, api.InspectOptions(in_process=True)
    ),
    "doctor": lambda root: api.doctor(root / "copy"),
    "dump": lambda root: api.dump(root / "copy" / NAME),
    "why_no_row": lambda root: api.why_no_row(root / "copy" / NAME),
    "dump_parts": lambda root: api.dump_parts(root / "copy" / NAME),
    "log_offsets": lambda root: api.log_offsets(root / "copy", NAME),
    "log_read": lambda root: api.log_read(root / "copy", NAME),
    "log_follow": lambda root: next(api.log_follow(root / "copy", NAME)),
    "log_to_parquet": lambda root: api.log_to_parquet(root / "copy", NAME, root / "read.parquet"),
    "start_problems": lambda root: api.start_problems([str(root / "copy")]),
    "verify": lambda root: api.verify(root / "copy"),
    "verify_against": lambda root: api.verify_against(root / "copy", root / "original"),
    "verify_manifest": lambda root: api.verify_manifest(root / "copy"),
}
OF_NO_LOG_DIR = {
    *("as_of_ms", "conditions_of_plan", "conditions_of_run", "met_by_plan", "met_by_run"),
    *("known_of_cleanings", "merge_reports", "metrics_of", "read_records", "read_run_report"),
    *("forbid_start", "problems_of", "to_arrow", "to_pandas", "what_was_changed"),
    "discard",  # of what a run has kept elsewhere
}


def log_options() -> LogOptions:
    return LogOptions(clock=lambda: 0, scheduler=ManualScheduler(lambda: 0))


def read_and_append(root: Path) -> None:
    table = read_table(str(root / "copy" / NAME))
    with Log.open(str(root / "copy" / NAME), log_options()) as log:
        append_table(log, table)


OF_STORAGE: dict[str, Call] = {
    "Log": lambda root: Log.open(str(root / "copy" / NAME), log_options()),
    "LogManager": lambda root: LogManager([str(root / "copy")]).start(),
    "append_table": read_and_append,
}
READING_STORAGE: dict[str, Call] = {
    "read_table": lambda root: read_table(str(root / "copy" / NAME)),
    "partition_dirs": lambda root: partition_dirs(str(root / "copy" / NAME)),
}


def functions_of(module: Any) -> set[str]:
    return {name for name in module.__all__ if isfunction(getattr(module, name))}


def test_no_function_is_forgotten() -> None:
    assert functions_of(api) == {*CHANGING, *READING, *OF_NO_LOG_DIR}
    of_no_log_dir = {"encode_batch", "KafkaLogDataSource"}
    own = functions_of(compactor) - functions_of(api) - of_no_log_dir
    assert own | {"Log", "LogManager"} == {*OF_STORAGE, *READING_STORAGE}


@MARKS
@pytest.mark.usefixtures("mark")
def test_what_changes_a_log_directory_refuses_a_copy(marked: Path) -> None:
    before = state_of(marked)
    for name, call in CHANGING.items():
        with pytest.raises(api.RefusedError, match=r"never finished|nobody is to change"):
            call(marked)
            pytest.fail(name)
    for name, call in OF_STORAGE.items():
        with pytest.raises(CopyMarkedError, match="Nothing was changed"):
            call(marked)
            pytest.fail(name)
    changed = {name for name, state in state_of(marked).items() if before.get(name) != state}
    assert changed <= {"copy/.lock", "other/.lock"}


@MARKS
@pytest.mark.usefixtures("mark")
def test_what_only_reads_changes_nothing(marked: Path) -> None:
    before = state_of(marked)
    for call in (*READING.values(), *READING_STORAGE.values()):
        try:
            found = call(marked)
            if isgenerator(found) or isinstance(found, Iterator):
                list(found)
        except api.LogCompactionError:
            pass  # it may refuse, or find that a snapshot is none, as these are
    (marked / "read.parquet").unlink()
    assert state_of(marked) == before


def test_a_table_can_be_read_where_no_log_is_opened(made: Path) -> None:
    assert isinstance(read_table(str(made / "copy" / NAME)), pa.Table)
