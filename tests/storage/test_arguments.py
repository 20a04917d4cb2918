"""Public functions of `storage`: a path may be a `str` or an `os.PathLike`, one or several.

What makes no sense is a typed error that names the parameter, before anything is done.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from compactor import (
    Batching,
    Log,
    LogManager,
    LogOptions,
    ManagerOptions,
    Selection,
    append_table,
    partition_dirs,
    read_table,
)
from demo.new_log_dir import new_log_dir
from storage.arrow.log_view import splits_of
from storage.codecs.compression import Codec
from storage.errors import LogCompactionError
from storage.log.scheduler import ManualScheduler
from tests.support.file_states import state_of

NOW_MS = 1_700_000_000_000
OPTIONS = LogOptions(clock=lambda: NOW_MS, scheduler=ManualScheduler(lambda: NOW_MS))
TABLE = pa.table({"key": [b"a"], "value": [b"b"]})


class NoPath:
    """Says that it is a path, and is none."""

    def __fspath__(self) -> Any:
        return 5


STRANGE: list[Any] = [  # neither a path nor options nor an integer
    *(b"/data", bytearray(b"x"), 1.5, {}, {"a": 1}, {1, 2}, [1], [b"x"], [None], [[]], ()),
    *(
        date(2026, 1, 1),
        datetime(2026, 1, 1, tzinfo=UTC),
        timedelta(1),
        np.datetime64("2026-01-01"),
    ),
    *(np.zeros(2), np.array(3), object(), int, ..., slice(1), memoryview(b"x"), lambda: 1, 1j),
    *(ValueError("x"), [""], ["a\0"], frozenset([3]), b"", True, np.float64(1), Path, range(3)),
    NoPath(),
]
NO_PATHS = [*STRANGE, None, "", "a\0b", "\ud800", 3, np.int64(3), -1, 2**70, [], OPTIONS, TABLE]
NO_OPTIONS = [*STRANGE, 3, "x", Path("/x"), TABLE, 2**70]
NO_COUNTS = [*STRANGE, None, "3", Path("/x"), TABLE, 2**70, -2]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    with new_log_dir(str(tmp_path / "kafka"), "cluster", clock=lambda: NOW_MS) as manager:
        append_table(manager.create(("orders", 0)), TABLE)
    return tmp_path / "kafka"


def opened(path: Any, options: Any = OPTIONS) -> None:
    with Log.open(path, options):
        pass


def started(log_dirs: Any, options: Any = None) -> int:
    with LogManager(log_dirs, options) as manager:
        return len(manager.logs)


CALLS: dict[str, tuple[Callable[[Path, Any], object], list[Any]]] = {
    "path": (lambda _, value: opened(value), NO_PATHS),
    "options": (lambda path, value: opened(path / "orders-0", value), NO_OPTIONS),
    "log_dirs": (lambda _, value: started(value), NO_PATHS),
    "options ": (lambda path, value: started(path, value), NO_OPTIONS),
    "path ": (lambda _, value: partition_dirs(value), NO_PATHS),
    "source": (lambda _, value: read_table(value), NO_PATHS),
    "path  ": (lambda _, value: splits_of(value, Selection(), 100), NO_PATHS),
    "selection": (lambda p, v: splits_of(p / "orders-0", v, 100), NO_OPTIONS),
    "split_bytes": (
        lambda path, value: splits_of(path / "orders-0", Selection(), value),
        NO_COUNTS,
    ),
    "log": (lambda _, value: append_table(value, TABLE), NO_OPTIONS),
    "codec": (lambda _, value: Batching(codec=value), NO_OPTIONS),
    "batch_bytes": (lambda _, value: Batching(batch_bytes=value), [*NO_COUNTS, 0]),
    "leader_epoch": (lambda _, v: Batching(leader_epoch=v), [*NO_COUNTS, 2**31]),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_makes_no_sense_is_a_typed_error_that_names_the_parameter(
    name: str, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, values = CALLS[name]
    before = state_of(tmp_path)
    for value in values:
        with pytest.raises(LogCompactionError, match=rf"^{name.strip()}\b") as raised:
            call(log_dir, value)
            pytest.fail(repr(value))
        assert raised.value.reason_code == "wrong-usage"
    assert state_of(tmp_path) == before


def test_what_is_appended_in_batches_is_asked_by_name(log_dir: Path) -> None:
    with Log.open(log_dir / "orders-0", OPTIONS) as log:
        for value in [value for value in NO_OPTIONS if value is not TABLE]:
            with pytest.raises(LogCompactionError, match=r"^table: expected"):
                append_table(log, value)
        for value in NO_OPTIONS:
            with pytest.raises(LogCompactionError, match=r"^batching: expected"):
                append_table(log, TABLE, value)
        assert log.log_end_offset == 1


def test_a_path_may_be_text_or_path_like_one_or_several(log_dir: Path) -> None:
    for path in (log_dir / "orders-0", str(log_dir / "orders-0"), np.str_(log_dir / "orders-0")):
        opened(path)
        assert read_table(path).num_rows == 1
        count: Any = np.int64(100)
        assert len(splits_of(path, Selection(), count)) == 1
    assert list(partition_dirs(log_dir)) == [("orders", 0)]
    assert list(partition_dirs(str(log_dir))) == [("orders", 0)]
    for paths in (
        log_dir,
        str(log_dir),
        [log_dir],
        (str(log_dir),),
        {str(log_dir)},
        iter([log_dir]),
    ):
        assert started(paths, ManagerOptions(clock=lambda: NOW_MS)) == 1
    assert Batching(codec=Codec.LZ4, batch_bytes=1).codec is Codec.LZ4
