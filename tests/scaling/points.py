"""The measured points, as they are kept beside this module for the next fit."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.scaling.model import Point, Size

FILE = Path(__file__).with_name("points.json")


class ParallelPoint(NamedTuple):
    """A whole command with so many tasks at once."""

    master: str
    size: Size
    start_seconds: float  # until Spark was ready
    seconds: float  # of the phases behind that
    processor_seconds: float  # of all processes, from the start to the end


class Measured(NamedTuple):
    machine: str
    points: list[Point]
    parallel: list[ParallelPoint]


def read() -> Measured:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    points = [Point(name, Size(*size), *seconds) for name, size, *seconds in found["points"]]
    parallel = [
        ParallelPoint(name, Size(*size), *seconds) for name, size, *seconds in found["parallel"]
    ]
    return Measured(found["machine"], points, parallel)


def save(measured: Measured) -> None:
    FILE.write_text(json.dumps(measured._asdict(), indent=1) + "\n", "utf-8")
