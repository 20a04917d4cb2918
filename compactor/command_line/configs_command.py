"""`configs`, from the words of the command line to a table and a result."""

from compactor import api
from compactor.command_line.requests import ConfigsArguments, Format, Result, rules_of_settings
from compactor.exit_codes import ExitCode
from compactor.host.output import print_line
from compactor.views.configs_table import configs_document, configs_lines
from compactor.views.next_steps import after_configs
from compactor.views.report_json import summary
from storage.collector import collector_paused


@collector_paused()  # from the first entry to the last line nothing becomes garbage
def result_of(wanted: ConfigsArguments) -> Result:
    """Show the settings of one topic, or of all."""
    found = api.configs(wanted.log_dirs, wanted.topic, rules_of_settings(wanted.configuration))
    if wanted.format is Format.TABLE:
        print_line("\n".join((*configs_lines(found), *after_configs(found))))
    begin = summary("configs", ExitCode.OK)
    return Result(begin | configs_document(found), begin)
