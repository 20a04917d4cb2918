"""The commands of `compactor log`: one log under the hands of its operator.

Like the others they only say what is wanted; `carry_out` does it.
"""

from importlib import import_module
from typing import Annotated

import typer

from compactor.command_line import log_change_commands, log_look_commands
from compactor.command_line.given_once import Commands, GivenOnce
from compactor.command_line.kafka_options import Kafka
from compactor.command_line.options import Debug
from compactor.command_line.requests import Format, ReplayArguments, Request

app = typer.Typer(
    name="log",
    cls=Commands,
    rich_markup_mode="rich",
    help="Work with one log as Kafka's storage engine does.",
    no_args_is_help=True,
)


@app.callback()
def log() -> None:
    """Work with one log as Kafka's storage engine does."""


app.command(cls=GivenOnce)(log_look_commands.offsets)
app.command(cls=GivenOnce)(log_look_commands.read)
app.command(cls=GivenOnce)(log_change_commands.roll)
app.command(cls=GivenOnce)(log_change_commands.delete_records)
app.command(cls=GivenOnce)(log_change_commands.truncate)
app.command(cls=GivenOnce)(log_change_commands.append)
app.command(cls=GivenOnce)(log_change_commands.abort)
app.command(cls=GivenOnce)(log_change_commands.move)


@app.command(cls=GivenOnce)
def replay(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="a file of operations, a JSON object a line")
    ],
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="a new or empty directory for the log")
    ],
    kafka: Kafka = None,
    debug: Debug = False,
) -> Request:
    """Do a script of operations on a new log, and print what came of each line.

    The operations: append (as leader, coordinator or follower), end_txn, read, look-ups of offsets,
    times, epochs and aborted transactions, roll, flush, truncate, delete records, retention, high
    watermark, leader epochs, producer snapshots; open and close, crash, damage to files, and
    opening again; cleaning, which starts no Spark. A script that begins with the operation manager
    is for several logs under a log manager, in directories d0, d1, ... of DIR.

    [dim]compactor log replay script.jsonl /tmp/log[/]
    """
    wanted = ReplayArguments(script, directory, kafka)
    module = "compactor.command_line.replay_command"
    return Request(
        command="replay",
        carry_out=lambda: import_module(module).result_of(wanted),
        format=Format.TABLE,
        reports=(),
        debug=debug,
    )
