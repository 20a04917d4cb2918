"""The commands of `compactor log`: one log under the hands of its operator.

Like the others they only say what is wanted; `carry_out` does it.
"""

import typer

from compactor.command_line import log_change_commands, log_look_commands
from compactor.command_line.given_once import Commands, GivenOnce

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
