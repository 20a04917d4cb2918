"""Records of a log as Arrow tables, and into a log from these. Needs pyarrow, and nothing of Spark.

    from storage import arrow

    arrow.read("/data/kafka/orders-0")                       # a pyarrow.Table of all records
    arrow.read(log, arrow.Selection(columns=["key", "value"], isolation="read_committed"))
    arrow.append(log, table, arrow.Batching(codec=Codec.ZSTD))  # as the log's leader
    arrow.RecordStream(path, arrow.Selection(start_offset=100)).reader()  # in bounded memory

A source is an open `storage.log.Log`, or the directory of a partition that no broker has open.
`selection` lists the columns and says what can be selected. A log that is damaged is a
CorruptFileError behind the last sound batch; or it ends there (`until_damage`), and the table's
metadata says where and why (`STOPPED_AT`).
"""

from storage.arrow.log_view import LogView as LogView
from storage.arrow.log_view import NotALogError as NotALogError
from storage.arrow.log_view import partition_dirs as partition_dirs
from storage.arrow.log_view import splits_of as splits_of
from storage.arrow.reading import STOPPED_AT as STOPPED_AT
from storage.arrow.reading import RecordStream as RecordStream
from storage.arrow.reading import read as read
from storage.arrow.selection import COLUMNS as COLUMNS
from storage.arrow.selection import SCHEMA as SCHEMA
from storage.arrow.selection import BadSelectionError as BadSelectionError
from storage.arrow.selection import Isolation as Isolation
from storage.arrow.selection import Selection as Selection
from storage.arrow.writing import Appended as Appended
from storage.arrow.writing import AppendStoppedError as AppendStoppedError
from storage.arrow.writing import BadTableError as BadTableError
from storage.arrow.writing import Batching as Batching
from storage.arrow.writing import append as append

__all__ = (
    "COLUMNS",
    "SCHEMA",
    "STOPPED_AT",
    "AppendStoppedError",
    "Appended",
    "BadSelectionError",
    "BadTableError",
    "Batching",
    "Isolation",
    "LogView",
    "NotALogError",
    "RecordStream",
    "Selection",
    "append",
    "partition_dirs",
    "read",
    "splits_of",
)
