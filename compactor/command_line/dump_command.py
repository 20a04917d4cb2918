"""`dump`, from the words of the command line to a stream of lines."""

from compactor import api
from compactor.command_line.requests import DumpArguments, DumpFormat
from compactor.host.log_lines import Level, log_line
from compactor.host.output import print_utf8
from compactor.host.printable import printable
from compactor.views.dump_lines import chunks_of


def result_of(wanted: DumpArguments) -> None:
    """Every line of the dump; where nobody takes them any more, no more is read."""
    options = api.DumpOptions(
        from_offset=wanted.from_offset, to_offset=wanted.to_offset, limit=wanted.limit
    )
    parts = api.dump_parts(wanted.path, options)
    in_json = wanted.format is DumpFormat.JSON
    is_empty = True
    for chunk in chunks_of(parts, in_json):
        is_empty = False
        if not print_utf8(chunk, in_its_encoding=not in_json):
            return
    if is_empty:
        log_line(
            f"{printable(wanted.path)}: nothing to show: {api.why_no_row(wanted.path, options)}",
            Level.INFO,
        )
