"""`log read`, from the words of the command line to a stream of records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from compactor import api
from compactor.command_line.command import Output, output_part, part
from compactor.command_line.console import show_warnings
from compactor.command_line.shared_options import (
    OF_ONE_LOG,
    LogCommand,
)
from compactor.errors import UsageError
from compactor.host.log_lines import log_line
from compactor.host.output import print_bytes, print_line, print_utf8
from compactor.host.printable import counted
from compactor.host.shell_commands import about_file, named
from compactor.settings.options import option
from compactor.views.record_lines import (
    CSV_HEADER,
    Form,
    bytes_of,
    csv_line,
    json_line,
    table_line,
    value_bytes,
)


class ReadFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    VALUES = "values"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCommand(LogCommand):
    """Show the records of a log as they stand in its files.

    Nothing is changed and no lock taken. It works beside a running broker, too, and with --follow
    shows what that appends. Where the log is damaged all records before are shown, and the exit
    code is 1. Bytes that are not UTF-8 stand as escapes, in JSON as {"hex": ...}.

    [dim]compactor log read /data/kafka orders-0 --from 2026-11-20T12:00:00Z --limit 10[/]

    [dim]compactor log read /data/kafka orders-0 --format parquet --output orders.parquet[/]
    """

    NAME: ClassVar[str] = "log read"
    options: api.ReadOptions = part(
        api.ReadOptions, "first", "end", "isolation", "limit", "max_bytes"
    )
    key: str | None = option(None, "KEY", "Only records with this key, written as --keys says")
    keys: Form = option(Form.TEXT, "", "Form of keys; json: a JSON value of its own", kind=Form)
    values: Form = option(Form.TEXT, "", "Form of values", kind=Form)
    format: ReadFormat = option(
        ReadFormat.TABLE,
        "",
        "json: as log append takes it; values: bare bytes",
        kind=ReadFormat,
    )
    path: str | None = option(None, "FILE", "File for --format parquet", name="--output")
    follow: bool = option(False, "", "Go on with records that are appended, until interrupted")
    rules: api.Rules = part(api.Rules, *OF_ONE_LOG)
    output: Output = output_part("debug")

    def execute(self) -> None:
        """Show records; where nobody takes them any more, no more are read."""
        options = replace(self.options, key=_key(self), rules=self.rules)
        if self.format is ReadFormat.PARQUET:
            _to_parquet(self, options)
            return
        if self.path is not None:
            raise UsageError(
                "--output: goes with --format parquet; the others go to standard output"
            )
        if self.follow:
            _show(self, api.log_follow(self.log_dir, self.topic_partition, options))
        else:
            _show(self, api.log_read(self.log_dir, self.topic_partition, options, _warn))


_LINES: Mapping[ReadFormat, Callable[["api.ReadRecord", Form, Form], str]] = {
    ReadFormat.TABLE: table_line,
    ReadFormat.JSON: json_line,
    ReadFormat.CSV: csv_line,
}


def _to_parquet(wanted: ReadCommand, options: "api.ReadOptions") -> None:
    if wanted.path is None or wanted.follow:
        raise UsageError("--format parquet: needs --output FILE, and goes without --follow")
    count = api.log_to_parquet(wanted.log_dir, wanted.topic_partition, wanted.path, options, _warn)
    log_line(f"{counted(count, 'record')} in {wanted.path}")


def _show(wanted: ReadCommand, chunks: "Iterator[list[api.ReadRecord]]") -> None:
    if wanted.format is ReadFormat.CSV and not print_line(CSV_HEADER):
        return
    for records in chunks:
        if not (_print(wanted, records) if records else print_bytes(b"")):
            return


def _print(wanted: ReadCommand, records: "Sequence[api.ReadRecord]") -> bool:
    """Whether they were taken."""
    if wanted.format is ReadFormat.VALUES:
        return print_bytes(b"".join(map(value_bytes, records)))
    line = _LINES[wanted.format]
    forms = wanted.keys, wanted.values
    lines = "\n".join(line(record, *forms) for record in records)
    if wanted.format is ReadFormat.TABLE:
        return print_line(lines)
    return print_utf8(f"{lines}\n".encode(errors="backslashreplace"))


def _key(wanted: ReadCommand) -> bytes | None:
    if wanted.key is None:
        return None
    try:
        return bytes_of(wanted.key, wanted.keys)
    except ValueError as error:
        raise UsageError(f"--key {wanted.key}: is not {wanted.keys.value}: {error}") from error


def _warn(hidden: Sequence[str]) -> None:
    show_warnings(
        [
            f"{path}: damaged: what a broker that starts would cut off is not shown; "
            f"{about_file('verify', path)} says what is wrong, {named('dump')} shows single files"
            for path in hidden
        ]
    )
