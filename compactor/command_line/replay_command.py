"""`log replay`, from the words of the command line to the lines of a transcript."""

import json

from compactor import api
from compactor.command_line.requests import ReplayArguments
from compactor.host.output import print_line


def result_of(wanted: ReplayArguments) -> None:
    """Do every line, whether or not anybody takes what is told of it."""
    is_read = True
    for line in api.replay(wanted.script, wanted.directory, wanted.kafka):
        if is_read:
            is_read = print_line(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
