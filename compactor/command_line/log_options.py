"""The options of the commands `compactor log …`, as typer takes them."""

from typing import Annotated

import typer

from compactor.command_line.completion import directories, logs

CHANGE = "Change"

LogDir = Annotated[
    str,
    typer.Argument(
        metavar="LOG_DIR",
        help="log directory of a stopped broker (log.dirs)",
        show_default=False,
        autocompletion=directories,
    ),
]
TopicPartition = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC-PARTITION", help="one log in it, like orders-0", autocompletion=logs
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", rich_help_panel=CHANGE, help="do it without asking on the terminal"),
]
OnlyReplica = Annotated[
    bool,
    typer.Option(
        "--only-replica",
        rich_help_panel=CHANGE,
        help="no other replica of this partition exists, or all others are rebuilt from this one. "
        "Without it the command is refused: the other replicas would keep other records under the "
        "same offsets and leader epochs, no broker would notice, and readers would get the one or "
        "the other, by who leads",
    ),
]
LogDryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        rich_help_panel=CHANGE,
        help="do it in memory only, and say what would come of it",
    ),
]
RecoverLogFirst = Annotated[
    bool,
    typer.Option(
        "--recover-first",
        rich_help_panel=CHANGE,
        help="where the broker did not stop cleanly, or one of these commands was cut short, do "
        "what compactor recover does with the directory, then go on; refused otherwise",
    ),
]
