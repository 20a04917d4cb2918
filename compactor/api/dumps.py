"""`dump`: what stands in a file of a log directory, or in a partition."""

from collections.abc import Iterator

from compactor.api.places import in_place
from compactor.exit_codes import UsageError
from compactor.inspect.dump import Row, rows_of
from storage.files import filesystem


def dump(path: str) -> Iterator[Row]:
    """A row for each batch, record or entry, read as they are asked for; `kind` says which it is.

    Raise UsageError if there is nothing at path; CorruptFileError where a file is damaged, after
    the rows that stand before it, and UnsupportedFormatError for a file that is none of Kafka's.
    """
    local = in_place("PATH", path)
    if not filesystem.exists(local):
        raise UsageError(f"PATH {path}: No such file or directory")
    return rows_of(local)
