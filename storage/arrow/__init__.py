"""Records of a log as Arrow tables, and into a log from these. Needs pyarrow, and nothing of Spark.

Programs take these names from `compactor`, which calls `read` `read_table` and `append`
`append_table`; here they are left for programs that were written before.

A source is an open `Log`, or the directory of a partition that no broker has open. `selection`
lists the columns and says what can be selected. A log that is damaged is a CorruptFileError after
the last sound batch; or it ends there (`until_damage`), and the table's metadata says where and
why (`STOPPED_AT`).
"""

from typing import TYPE_CHECKING

from storage.old_names import old_names

if TYPE_CHECKING:
    from storage.arrow.log_view import LogView as LogView
    from storage.arrow.log_view import NotALogError as NotALogError
    from storage.arrow.log_view import partition_dirs as partition_dirs
    from storage.arrow.log_view import splits_of as splits_of
    from storage.arrow.reading import STOPPED_AT as STOPPED_AT
    from storage.arrow.reading import RecordStream as RecordStream
    from storage.arrow.selection import COLUMNS as COLUMNS
    from storage.arrow.selection import SCHEMA as SCHEMA
    from storage.arrow.selection import BadSelectionError as BadSelectionError
    from storage.arrow.selection import Isolation as Isolation
    from storage.arrow.selection import Selection as Selection
    from storage.arrow.writing import Appended as Appended
    from storage.arrow.writing import AppendStoppedError as AppendStoppedError
    from storage.arrow.writing import BadTableError as BadTableError
    from storage.arrow.writing import Batching as Batching

_MODULES = {
    name: f"storage.arrow.{module}"
    for module, names in {
        "log_view": "LogView NotALogError partition_dirs splits_of",
        "reading": "STOPPED_AT RecordStream read",
        "selection": "COLUMNS SCHEMA BadSelectionError Isolation Selection",
        "writing": "Appended AppendStoppedError BadTableError Batching append",
    }.items()
    for name in names.split()
}
__all__ = list(_MODULES)
__getattr__ = old_names(__name__, _MODULES, {"read": "read_table", "append": "append_table"})
