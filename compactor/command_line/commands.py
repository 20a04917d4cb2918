"""The parser of all commands. Each has a module of its own.

A module is loaded when its command is typed, or a list of all commands is wanted; what carries the
command out is loaded when it is first asked for (`api`, `views`). So `--version`, `--help` and
`plan` never load Spark or a kernel.
"""

import os
from typing import Any

import click

from compactor.command_line.parser import CommandsByName, group
from compactor.command_line.shared_options import SHELLS, VARIABLE
from compactor.host.machine import version
from compactor.host.output import print_line


def _shows(text: str, help: str, name: str) -> click.Option:
    """Return an option that prints a text, and ends."""

    def show(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted and not ctx.resilient_parsing:
            print_line(text)
            ctx.exit()

    return click.Option(
        [name], is_flag=True, is_eager=True, expose_value=False, callback=show, help=help
    )


def _show_script(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None or ctx.resilient_parsing:
        return
    if shell not in SHELLS:
        raise click.UsageError(f"--completion: {shell!r} is not one of {', '.join(SHELLS)}", ctx)
    from click.shell_completion import get_completion_class  # needed by a shell alone

    script: Any = get_completion_class(shell)
    print_line(script(ctx.command, {}, "compactor", VARIABLE).source())
    ctx.exit()


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OF_LOG = group(
    "log",
    "Work with one log as Kafka's storage engine does.",
    CommandsByName(
        {
            "offsets": "compactor.command_line.log_offsets_command:OffsetsCommand",
            "read": "compactor.command_line.log_read_command:ReadCommand",
            "roll": "compactor.command_line.log_change_command:RollCommand",
            "delete-records": "compactor.command_line.log_change_command:DeleteRecordsCommand",
            "truncate": "compactor.command_line.log_change_command:TruncateCommand",
            "append": "compactor.command_line.log_change_command:AppendCommand",
            "abort": "compactor.command_line.log_change_command:AbortCommand",
            "move": "compactor.command_line.log_change_command:MoveCommand",
        },
    ),
)
app = group(
    "compactor",
    "Compact Kafka log directories without a broker, in parallel on Spark.",
    CommandsByName(
        {
            "plan": "compactor.command_line.plan_command:PlanCommand",
            "run": "compactor.command_line.run_command:RunCommand",
            "recover": "compactor.command_line.recover_command:RecoverCommand",
            "undo": "compactor.command_line.undo_command:UndoCommand",
            "explain": "compactor.command_line.explain_command:ExplainCommand",
            "configs": "compactor.command_line.configs_command:ConfigsCommand",
            "inspect": "compactor.command_line.inspect_command:InspectCommand",
            "doctor": "compactor.command_line.doctor_command:DoctorCommand",
            "dump": "compactor.command_line.dump_command:DumpCommand",
            "verify": "compactor.command_line.verify_command:VerifyCommand",
            "report": "compactor.command_line.report_command:ReportCommand",
            "log": _OF_LOG,
        },
    ),
    [
        _shows(f"compactor {version()}", "Show the version", "--version"),
        _shows(
            os.path.join(_PACKAGE, "__main__.py"),
            "Path of the file for spark-submit: spark-submit $(compactor --entry-file) run …",
            "--entry-file",
        ),
        click.Option(
            ["--completion"],
            metavar="SHELL",
            is_eager=True,
            expose_value=False,
            callback=_show_script,
            help="Print the script that makes bash, zsh or fish complete commands, "
            "options and logs",
        ),
    ],
    epilog="[bold]Examples[/]\n\n"
    "compactor plan /data/kafka\n\n"
    "compactor run /data/kafka --dry-run\n\n"
    "compactor run /disk1/kafka /disk2/kafka --include '__consumer_offsets' --report last.json\n\n"
    "compactor verify /data/kafka orders-7\n\n"
    "compactor verify /data/kafka --against /backup/kafka-before\n\n"
    "[bold]Exit codes[/]\n\n"
    "0 done, or nothing was eligible; 1 failed; 2 wrong usage or configuration; 3 refused; "
    "4 some logs failed or were set aside, or verify or doctor found something; "
    "5 a condition of --fail-if holds; "
    "130, 143, 129 interrupted by Ctrl-C, SIGTERM, SIGHUP",
)
