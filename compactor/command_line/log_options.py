"""The options of the commands `compactor log …`, as typer takes them."""

from typing import Annotated

import typer

from compactor.command_line.completion import directories, logs

CHANGE = "Change"

LogDir = Annotated[
    str,
    typer.Argument(
        metavar="LOG_DIR",
        help="Log directory of a stopped broker (log.dirs)",
        show_default=False,
        autocompletion=directories,
    ),
]
TopicPartition = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC-PARTITION", help="One log in it, like orders-0", autocompletion=logs
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", rich_help_panel=CHANGE, help="Do it without asking on the terminal"),
]
OnlyReplica = Annotated[
    bool,
    typer.Option(
        "--only-replica",
        rich_help_panel=CHANGE,
        help="Required: say that no other replica exists, or that all others are "
        "rebuilt from this one",
    ),
]
LogDryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        rich_help_panel=CHANGE,
        help="Show the result without changing files",
    ),
]
RecoverLogFirst = Annotated[
    bool,
    typer.Option(
        "--recover-first",
        rich_help_panel=CHANGE,
        help="Recover LOG_DIR first if the broker did not stop cleanly, or a command was cut short",
    ),
]
