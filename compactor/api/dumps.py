"""`dump`: the contents of a file of a log directory, or of a partition."""

from collections.abc import Iterator

from compactor.api.path_arguments import in_place
from compactor.errors import UsageError
from compactor.host.suggestions import near_path
from compactor.inspection.dump import parts_of, rows_of
from compactor.inspection.dumped_log import EVERY_OFFSET, RecordBlock, Row, WantedOffsets
from compactor.settings.rules import DumpOptions
from storage.arguments import PathArg
from storage.files.local import LOCAL

ALL_OF_IT = DumpOptions()


def dump(path: PathArg, options: DumpOptions = ALL_OF_IT) -> Iterator[Row]:
    """Yield a row for each batch, record or entry of a file or a partition; `kind` says which.

    Files are read while rows are asked for. Raise UsageError if path does not exist;
    CorruptFileError where a file is damaged, after the rows before the damage;
    UnsupportedFormatError for a file that is none of Kafka's.
    """
    return rows_of(_existing_path(path), _wanted(options), LOCAL)


def dump_parts(path: PathArg, options: DumpOptions = ALL_OF_IT) -> Iterator[Row | RecordBlock]:
    """Yield the same as `dump`, with the records of a batch as one value, to be shown as lines."""
    return parts_of(_existing_path(path), _wanted(options), LOCAL)


def why_no_row(path: PathArg, options: DumpOptions = ALL_OF_IT) -> str:
    """Say why a dump of a path shows nothing; a sentence without a full stop."""
    if options != ALL_OF_IT:
        return "no record or entry is in the range that was asked for"
    if LOCAL.is_directory(_existing_path(path)):
        return "no file is in this directory; the files of a log are in its own, TOPIC-PARTITION"
    return "the file is empty"


def _existing_path(path: PathArg) -> str:
    local = in_place("path", path)
    if not LOCAL.exists(local):
        raise UsageError(f"No such file or directory{near_path(local)}", "path", path)
    return local


def _wanted(options: DumpOptions) -> WantedOffsets:
    to_offset = EVERY_OFFSET if options.to_offset is None else options.to_offset
    return WantedOffsets(options.from_offset, to_offset, options.limit)
