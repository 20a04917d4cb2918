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
        help="read and write no more than this in a second on each host, all processes of the run "
        "together, like 200MB/s; by default there is no limit",
    ),
]
Nice = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        max=19,
        rich_help_panel=SPARK,
        help="niceness of the run, with Spark and its tasks; the kernel lets nice processes wait "
        "for the disk, too",
    ),
]
