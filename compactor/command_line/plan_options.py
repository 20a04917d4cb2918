"""The options of `plan` alone, as typer takes them."""

from typing import Annotated

import typer

from compactor import api
from compactor.command_line.options import OUTPUT

PlanOrder = Annotated[
    api.Order,
    typer.Option(
        "--order",
        rich_help_panel=OUTPUT,
        help="what comes first: most bytes to gain, highest dirty ratio, fewest bytes in all, or "
        "dirty for the longest time",
    ),
]
Top = Annotated[
    int,
    typer.Option(
        "--top",
        metavar="N",
        min=1,
        rich_help_panel=OUTPUT,
        help="rows of the list: so many topics, or each log where there are no more than N",
    ),
]
ShowAll = Annotated[
    bool,
    typer.Option(
        "--all", rich_help_panel=OUTPUT, help="list every log, and why each is passed over"
    ),
]
