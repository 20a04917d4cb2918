"""Lists of results as tables: what `recover`, `undo` and `configs` return, and `dump` yields."""

from collections.abc import Iterable
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from compactor.outcome.exit_codes import UsageError
from compactor.outcome.row_tables import Row, arrow_table, pandas_frame, row_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def to_arrow(results: Iterable[Any]) -> "pa.Table":
    """A row for each: dataclasses, named tuples or dictionaries; names within names are joined."""
    return arrow_table(map(_row, results))


def to_pandas(results: Iterable[Any]) -> "pd.DataFrame":
    """Likewise; ImportError where there is no pandas."""
    return pandas_frame(map(_row, results))


def _row(result: Any) -> Row:
    if isinstance(result, dict):
        return result
    if not (is_dataclass(result) or hasattr(result, "_fields")) or isinstance(result, type):
        expected = "expected results of the API's functions, or dictionaries"
        raise UsageError(f"results: {expected}, not {type(result).__name__}")
    return row_of(result)
