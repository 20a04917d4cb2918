"""`log read`, from the words of the command line to a stream of records."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from compactor import api
from compactor.command_line.console import show_warnings
from compactor.command_line.log_requests import ReadArguments, ReadFormat
from compactor.exit_codes import UsageError
from compactor.host.log_lines import log_line
from compactor.host.output import print_bytes, print_line, print_utf8
from compactor.host.printable import counted
from compactor.host.shell_commands import about_file, named
from compactor.views.record_lines import (
    CSV_HEADER,
    Form,
    bytes_of,
    csv_line,
    json_line,
    table_line,
    value_bytes,
)

_LINES: Mapping[ReadFormat, Callable[[api.ReadRecord, Form, Form], str]] = {
    ReadFormat.TABLE: table_line,
    ReadFormat.JSON: json_line,
    ReadFormat.CSV: csv_line,
}


def result_of(wanted: ReadArguments) -> None:
    """Show records; where nobody takes them any more, no more are read."""
    log = wanted.log
    options = api.ReadOptions(
        first=wanted.first,
        end=wanted.end,
        isolation=wanted.isolation,
        max_bytes=wanted.max_bytes,
        limit=wanted.limit,
        key=_key(wanted),
        rules=log.rules,
    )
    if wanted.format is ReadFormat.PARQUET:
        _to_parquet(wanted, options)
        return
    if wanted.output is not None:
        raise UsageError("--output: goes with --format parquet; the others go to standard output")
    if wanted.follow:
        _show(wanted, api.log_follow(log.log_dir, log.topic_partition, options))
    else:
        _show(wanted, api.log_read(log.log_dir, log.topic_partition, options, _warn))


def _to_parquet(wanted: ReadArguments, options: api.ReadOptions) -> None:
    if wanted.output is None or wanted.follow:
        raise UsageError("--format parquet: needs --output FILE, and goes without --follow")
    log = wanted.log
    count = api.log_to_parquet(log.log_dir, log.topic_partition, wanted.output, options, _warn)
    log_line(f"{counted(count, 'record')} in {wanted.output}")


def _show(wanted: ReadArguments, chunks: Iterator[list[api.ReadRecord]]) -> None:
    if wanted.format is ReadFormat.CSV and not print_line(CSV_HEADER):
        return
    for records in chunks:
        if not (_print(wanted, records) if records else print_bytes(b"")):
            return


def _print(wanted: ReadArguments, records: Sequence[api.ReadRecord]) -> bool:
    """Whether they were taken."""
    if wanted.format is ReadFormat.VALUES:
        return print_bytes(b"".join(map(value_bytes, records)))
    line = _LINES[wanted.format]
    forms = Form(wanted.keys), Form(wanted.values)
    lines = "\n".join(line(record, *forms) for record in records)
    if wanted.format is ReadFormat.TABLE:
        return print_line(lines)
    return print_utf8(f"{lines}\n".encode(errors="backslashreplace"))


def _key(wanted: ReadArguments) -> bytes | None:
    if wanted.key is None:
        return None
    try:
        return bytes_of(wanted.key, Form(wanted.keys))
    except ValueError as error:
        raise UsageError(f"--key {wanted.key}: is not {wanted.keys}: {error}") from error


def _warn(hidden: Sequence[str]) -> None:
    show_warnings(
        [
            f"{path}: damaged: what a broker that starts would cut off is not shown; "
            f"{about_file('verify', path)} says what is wrong, {named('dump')} shows single files"
            for path in hidden
        ]
    )
