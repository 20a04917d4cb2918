"""`log offsets`, from the words of the command line to tables and a result."""

from dataclasses import dataclass
from typing import ClassVar

from compactor import api, views
from compactor.command_line.command import Format, Output, Result, output_part, part, result_of
from compactor.command_line.console import show, show_lines, show_warnings
from compactor.command_line.shared_options import (
    OF_ONE_LOG,
    LogCommand,
)
from compactor.settings.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsCommand(LogCommand):
    """Show where a log begins and ends, what is replicated and decided, and its transactions.

    Leader epochs and open transactions are listed. It is what a broker that starts would find.
    Nothing is changed and no lock taken; beside a running broker it is the state of a moment.

    [dim]compactor log offsets /data/kafka orders-0 --at 2026-11-20T12:00:00Z[/]
    """

    NAME: ClassVar[str] = "log offsets"
    at: tuple[str, ...] = option(
        (),
        "TIME",
        "Also the first record that is not older than TIME, epoch milliseconds "
        "or ISO 8601. Repeatable",
        is_repeated=True,
    )
    rules: api.Rules = part(api.Rules, *OF_ONE_LOG)
    output: Output = output_part("format", "debug")

    def execute(self) -> Result:
        """Look at one log; show every offset."""
        times = [api.as_of_ms(text, "--at") for text in self.at]
        found = api.log_offsets(self.log_dir, self.topic_partition, times, self.rules)
        show_warnings(views.warnings_of(found))
        if self.output.format is Format.TABLE:
            show(lambda _: views.offsets_view(found))
            show_lines(views.after_offsets(self.log_dir, found))
        return result_of(self.NAME, found)
