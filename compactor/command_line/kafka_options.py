"""The options that say whose answer is given, and how exactly."""

from typing import Annotated

import typer

from compactor.command_line.options import CONFIGURATION, LOGS
from storage.kafka_versions import BY_NAME

Kafka = Annotated[
    str | None,
    typer.Option(
        "--kafka",
        metavar="|".join(BY_NAME),
        rich_help_panel=CONFIGURATION,
        help="Give the answer of this Kafka. Default: the broker's version by the "
        "metadata log, else the newest",
    ),
]
ExactBytes = Annotated[
    bool,
    typer.Option(
        "--exact-bytes",
        rich_help_panel=LOGS,
        help="Refuse to clean if a codec's build is not that Kafka's. Default: clean, with a note",
    ),
]
