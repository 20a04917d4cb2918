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
        help="what comes first, in the list and in a budget: gain (most dirty bytes to "
        "clean, with --sample, too), "
        "filthiest (highest dirty ratio), smallest (fewest bytes in all), or oldest (dirty for "
        "the longest time)",
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
SavePlan = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="also save the plan, to be carried out as it is with run --plan FILE",
    ),
]
PlanToRun = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        rich_help_panel=LOGS,
        help="carry out what plan --save wrote: its logs, ranges, settings and clock; refused "
        "where a log was changed since. LOG_DIR and options for them are left out",
    ),
]
LogDirsOrPlan = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG_DIR",
        help="log directories of one broker (log.dirs), or of several",
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
        help="take on no more than so many logs, in the order of --order; others are left",
    ),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        rich_help_panel=LOGS,
        help="read and rewrite no more than this, in whole logs: 500GB, for example",
    ),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(
        "--max-minutes",
        metavar="N",
        min=0,
        rich_help_panel=LOGS,
        help="take on whole logs as long as there is time for another, by the speed of this "
        "machine's last runs and of this one",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        rich_help_panel=OUTPUT,
        help="read up to --sample-bytes of each log, without Spark, and estimate what would go",
    ),
]
SampleBytes = Annotated[
    str,
    typer.Option(
        "--sample-bytes",
        metavar="SIZE",
        rich_help_panel=OUTPUT,
        help="for --sample: a log that is no larger is read whole, and what would go is exact",
    ),
]
