"""Who takes a table of a log, and what each finds in it, as rows of Python's own values."""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tables.dumped import Row

Found = list[Row]
OfTable = Callable[[pa.Table], Found]
OfParquet = Callable[[Path], Found]


def plain(rows: Iterable[Mapping[str, Any]]) -> Found:
    return [{name: _plain(name, value) for name, value in row.items()} for row in rows]


def _plain(name: str, value: Any) -> Any:
    if name == "headers":
        return [_header(each) for each in value]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, datetime):
        moment = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
        return moment.astimezone(UTC)  # Spark's is of the local zone
    return value.item() if hasattr(value, "item") else value


def _header(value: Any) -> tuple[str, bytes | None]:
    key, data = (value[name] for name in ("key", "value"))
    return key, None if data is None else bytes(data)


def _pyarrow(table: pa.Table) -> Found:
    table.validate(full=True)
    return plain(table.to_pylist())


def _pyarrow_file(path: Path) -> Found:
    return _pyarrow(pq.read_table(path))


def _of_frame(frame: Any) -> Found:
    """Of one of pandas."""
    return plain(frame.to_dict("records"))


def _pandas(table: pa.Table) -> Found:
    """Where a value is missing, pandas has an integer as a float: see `differences`."""
    return _of_frame(table.to_pandas())


def _pandas_of_arrow(table: pa.Table) -> Found:
    return _of_frame(table.to_pandas(types_mapper=import_module("pandas").ArrowDtype))


def _pandas_file(path: Path) -> Found:
    return _of_frame(import_module("pandas").read_parquet(path, dtype_backend="pyarrow"))


def _polars(table: pa.Table) -> Found:
    return plain(import_module("polars").from_arrow(table).rows(named=True))


def _polars_file(path: Path) -> Found:
    return plain(import_module("polars").read_parquet(path).rows(named=True))


def _of_query(query: str, **tables: pa.Table) -> Found:
    with import_module("duckdb").connect() as connection:
        connection.execute(f"set timezone = '{os.environ['TZ']}'")
        for name, table in tables.items():
            connection.register(name, table)
        found = connection.execute(query)
        names = [column[0] for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        [[count]] = connection.execute(query.replace("*", "count(*)")).fetchall()
    assert count == len(rows), (count, len(rows))
    return plain(rows)


def _duckdb(table: pa.Table) -> Found:
    return _of_query("select * from records", records=table)


def _duckdb_file(path: Path) -> Found:
    return _of_query(f"select * from '{path}'")


_READERS: Mapping[str, Mapping[str, tuple[OfTable | None, OfParquet | None]]] = {
    "pyarrow": {"pyarrow": (_pyarrow, _pyarrow_file)},
    "pandas": {
        "pandas": (_pandas, None),
        "pandas, Arrow's types": (_pandas_of_arrow, _pandas_file),
    },
    "polars": {"Polars": (_polars, _polars_file)},
    "duckdb": {"DuckDB": (_duckdb, _duckdb_file)},
}


def readers() -> Mapping[str, tuple[OfTable | None, OfParquet | None]]:
    """Those that are installed here."""
    return {
        name: each
        for package, those in _READERS.items()
        if find_spec(package) is not None
        for name, each in those.items()
    }


def differences(found: Found, expected: Found) -> list[str]:
    """The first few, in words."""
    if len(found) != len(expected):
        return [f"{len(found)} records, expected {len(expected)}"]
    wrong = []
    for mine, right in zip(found, expected, strict=True):
        if mine.keys() != right.keys():
            return [f"columns {', '.join(mine)}"]
        for name, value in right.items():
            if not _same(mine[name], value):
                wrong.append(f"offset {right['offset']}, {name}: {mine[name]!r}, not {value!r}")
    return wrong[:3]


def _same(found: Any, right: Any) -> bool:
    """As near as a float can be, where pandas has made one."""
    if isinstance(found, float) and isinstance(right, int):
        return found == float(right)
    return type(found) is type(right) and bool(found == right)
