"""`dump`, from the words of the command line to a stream of lines."""

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from compactor import api, views
from compactor.command_line.command import Command, Output, operand, output_part, part
from compactor.command_line.shared_options import logs
from compactor.host.log_lines import Level, log_line
from compactor.host.output import print_utf8
from compactor.host.printable import printable
from compactor.settings.options import option


class DumpFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpCommand(Command):
    """Show the batches and records of a file or a partition, or the entries of an index.

    Records of __consumer_offsets, __transaction_state and __cluster_metadata, also in *.checkpoint
    files, are shown as what they say.

    [dim]compactor dump /data/kafka orders-7 --limit 10[/]

    [dim]compactor dump /data/kafka/orders-7/00000000000000000000.log --format json[/]
    """

    NAME: ClassVar[str] = "dump"

    path: str = operand(
        "PATH",
        "A file of a log directory, a partition, or a log directory",
        missing="a file of a log directory, or a partition",
    )
    topic_partition: str | None = operand(
        "TOPIC-PARTITION",
        "Partition of the log directory, for example orders-7",
        default=None,
        offered=logs,
    )
    options: api.DumpOptions = part(api.DumpOptions, "from_offset", "to_offset", "limit")
    format: DumpFormat = option(
        DumpFormat.TEXT,
        "",
        "Text, or one JSON object a line",
        kind=DumpFormat,
    )
    output: Output = output_part("debug")

    def execute(self) -> None:
        """Every line of the dump; where nobody takes them any more, no more is read."""
        path, options = self.path, self.options
        if self.topic_partition is not None:
            path = os.path.join(path, self.topic_partition)
        parts = api.dump_parts(path, options)
        in_json = self.format is DumpFormat.JSON
        is_empty = True
        for chunk in views.chunks_of(parts, in_json):
            is_empty = False
            if not print_utf8(chunk, in_its_encoding=not in_json):
                return
        if is_empty:
            log_line(
                f"{printable(path)}: nothing to show: {api.why_no_row(path, options)}",
                Level.INFO,
            )
