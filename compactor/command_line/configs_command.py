"""`configs`, from the words of the command line to a table and a result."""

from dataclasses import dataclass
from typing import ClassVar

from compactor import api, views
from compactor.command_line.command import (
    Command,
    Format,
    Output,
    Result,
    operand,
    output_part,
    part,
    result_of,
)
from compactor.command_line.shared_options import (
    CONFIGURATION,
    LOG_DIR_MISSING,
    directories_or_topics,
    log_dirs_and_topic,
)
from compactor.host.output import print_line
from storage.gc_pause import collector_paused


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsCommand(Command):
    """Show the effective configuration of every topic here, and where each value comes from.

    [dim]compactor configs /data/kafka orders[/]
    """

    NAME: ClassVar[str] = "configs"

    words: tuple[str, ...] = operand(
        "LOG_DIR... [TOPIC]",
        "Log directories. A last word that is no directory is a topic: only that one, with its "
        "defaults",
        are_several=True,
        missing=LOG_DIR_MISSING,
        offered=directories_or_topics,
    )
    rules: api.Rules = part(api.Rules, *CONFIGURATION)
    output: Output = output_part("report", "format", "debug")

    @collector_paused()  # from the first entry to the last line nothing becomes garbage
    def execute(self) -> Result:
        """Show the settings of one topic, or of all."""
        log_dirs, topic = log_dirs_and_topic(self.words)
        found = api.configs(log_dirs, topic, self.rules)
        if self.output.format is Format.TABLE:
            print_line("\n".join((*views.configs_lines(found), *views.after_configs(found))))
        return result_of(self.NAME, views.configs_document(found))
