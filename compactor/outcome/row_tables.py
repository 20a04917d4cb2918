"""Make rows into tables of Arrow or pandas, and files: one column for each name, as they come.

A value within a value gets a name with both in it, or one where both have the same; a list becomes
one text, a line for each.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any

from compactor.host.printable import printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = Mapping[str, Any]
CSV, PARQUET = ".csv", ".parquet"
SHOWN_ROWS = 50  # of a table in a notebook


def arrow_table(rows: Iterable[Row]) -> "pa.Table":
    """Make a table of rows; a row without a value has a null in its place."""
    import pyarrow as pa

    flat = [dict(_flat(row)) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return pa.table({name: pa.array([row.get(name) for row in flat]) for name in names})


def pandas_frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """Make a data frame of rows; ImportError without pandas.

    Whole numbers are pandas' Int64, which has a place for none: an offset never becomes a float.
    """
    import pandas as pd
    import pyarrow as pa

    table = arrow_table(rows)
    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


def html_table(title: str, rows: Sequence[Row]) -> str:
    """The first rows for a notebook; every name is escaped."""
    flat = [dict(_flat(row)) for row in rows[:SHOWN_ROWS]]
    names = list(dict.fromkeys(name for row in flat for name in row))
    lines = ["".join(f"<td>{escape(_shown(row.get(name)))}</td>" for name in names) for row in flat]
    more = len(rows) - len(flat)
    rest = f"<p>and {more:,} more: .to_arrow() has all</p>" if more else ""
    heads = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p><b>{escape(printable(title))}</b></p>{table if flat else ''}{rest}"


def write_rows(rows: Sequence[Row], path: str, form: str, columns: Sequence[str]) -> None:
    """Write a file of them.

    Args:
        rows: What stands in the file.
        path: The file.
        form: CSV or PARQUET.
        columns: Those that a file without rows has.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = arrow_table(rows) if rows else pa.table({name: pa.nulls(0) for name in columns})
    write = {CSV: csv.write_csv, PARQUET: parquet.write_table}
    write[form](table, path)


def row_of(value: Any) -> dict[str, Any]:
    """A dataclass or a named tuple as a row; what begins with an underscore stays out."""
    if is_dataclass(value):
        names: Sequence[str] = [field.name for field in fields(value)]
    else:
        names = value._fields
    return {name: _plain(getattr(value, name)) for name in names if not name.startswith("_")}


def _plain(value: Any) -> Any:
    if is_dataclass(value) or hasattr(value, "_fields"):
        return row_of(value)
    return value


def column_name(name: str, of: str) -> str:
    """Of a value within a value; of: the column name of that one, "" for a row's own."""
    return name if not of else of if name == of else f"{of}_{name}"


def _flat(row: Row, of: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        column = column_name(name, of)
        if isinstance(value, Mapping):
            yield from _flat(value, column)
        elif isinstance(value, Enum):
            yield column, value.value
        elif isinstance(value, list | tuple):
            yield column, "\n".join(map(_in_list, value))
        else:
            yield column, _text(value) if isinstance(value, str) else value


def _in_list(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return (
        _text(value)
        if isinstance(value, str)
        else json.dumps(_plain(value), ensure_ascii=False, default=str)
    )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if type(value) is int else printable(str(value))


def _text(value: str) -> str:
    """Arrow takes UTF-8 alone: what is none, of a name on disk, is shown as an escape."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
