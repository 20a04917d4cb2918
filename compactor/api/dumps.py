"""`dump`: what stands in a file of a log directory, or in a partition."""

from collections.abc import Iterator

from compactor.api.places import in_place
from compactor.exit_codes import UsageError
from compactor.inspect.dump import Row, rows_of
from storage.files import filesystem


def dump(path: str) -> Iterator[Row]:
    """Yield a row for each batch, record or entry of a file or a partition; `kind` says which.

    Files are read while rows are asked for. Raise UsageError if there is nothing at path;
    CorruptFileError where a file is damaged, after the rows before the damage;
    UnsupportedFormatError for a file that is none of Kafka's.
    """
    local = in_place("PATH", path)
    if not filesystem.exists(local):
        raise UsageError(f"PATH {path}: No such file or directory")
    return rows_of(local)
