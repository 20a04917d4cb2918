"""The options of a run on a host that also does something else, as typer takes them."""

from typing import Annotated

import typer

from compactor.command_line.options import SPARK

IoLimit = Annotated[
    str | None,
    typer.Option(
        "--io-limit",
        metavar="RATE",
        rich_help_panel=SPARK,
        help="Read and write at most this much a second on each host, all processes "
        "together, like 200MB/s",
    ),
]
Nice = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        max=19,
        rich_help_panel=SPARK,
        help="CPU and I/O priority (nice value) of the run, with Spark and its tasks",
    ),
]
