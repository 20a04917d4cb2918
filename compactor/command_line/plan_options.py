"""The options about plans, as typer takes them."""

from typing import Annotated

import typer

from compactor import api
from compactor.command_line.options import LOGS, OUTPUT

PlanOrder = Annotated[
    api.Order,
    typer.Option(
        "--order",
        metavar="ORDER",
        rich_help_panel=LOGS,
        help="Order: gain (dirty bytes), filthiest, smallest or oldest",
    ),
]
Top = Annotated[
    int,
    typer.Option(
        "--top",
        metavar="N",
        min=1,
        rich_help_panel=OUTPUT,
        help="Rows of the list: topics, or logs if there are no more than N",
    ),
]
ShowAll = Annotated[
    bool,
    typer.Option(
        "--all", rich_help_panel=OUTPUT, help="List every log, and why each is passed over"
    ),
]
SavePlan = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Also save the plan, for run --plan FILE",
    ),
]
PlanToRun = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        rich_help_panel=LOGS,
        help="Carry out a plan of plan --save, without LOG_DIR. Refused if a log of "
        "it has changed since",
    ),
]
LogDirsOrPlan = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG_DIR",
        help="Log directories of a broker (log.dirs), or of several brokers",
        show_default=False,
    ),
]
MaxLogs = Annotated[
    int | None,
    typer.Option(
        "--max-logs",
        metavar="N",
        min=1,
        rich_help_panel=LOGS,
        help="Clean at most N logs, in --order",
    ),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        rich_help_panel=LOGS,
        help="Read and rewrite at most this much, in whole logs, like 500GB",
    ),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(
        "--max-minutes",
        metavar="N",
        min=0,
        rich_help_panel=LOGS,
        help="Stop starting new logs when N minutes are likely to be exceeded",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        rich_help_panel=OUTPUT,
        help="Read up to --sample-bytes of each log, without Spark, and estimate what would go",
    ),
]
SampleBytes = Annotated[
    str,
    typer.Option(
        "--sample-bytes",
        metavar="SIZE",
        rich_help_panel=OUTPUT,
        help="For --sample. A log of this size or less is read whole, and its result is exact",
    ),
]
