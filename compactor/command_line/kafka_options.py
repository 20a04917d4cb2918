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
        help="give the answer of this Kafka; by default that of the broker's software, as the "
        "metadata log says, else of the newest",
    ),
]
ExactBytes = Annotated[
    bool,
    typer.Option(
        "--exact-bytes",
        rich_help_panel=LOGS,
        help="refuse to clean where a codec's build is not that Kafka's; without it a note says so",
    ),
]
