"""`dump`, from the words of the command line to a stream of lines."""

from compactor import api
from compactor.command_line.requests import DumpArguments, DumpFormat
from compactor.host.output import print_line
from compactor.host.printable import printable
from compactor.views.dump_lines import json_line, text_line


def result_of(wanted: DumpArguments) -> None:
    """Every line of the dump; where nobody takes them any more, no more is read."""
    for row in api.dump(wanted.path):
        line = json_line(row) if wanted.format is DumpFormat.JSON else printable(text_line(row))
        if not print_line(line):
            return
