"""What an executor can lack, as values. Pure: the driver knows them before it loads Spark."""

from enum import StrEnum
from typing import NamedTuple


class Lack(StrEnum):
    """In the order in which problems are reported."""

    PYTHON = "python"  # or the package
    WORK_DIR = "work-dir"
    LOG_DIR = "log-dir"


class ExecutorProblem(NamedTuple):
    lack: Lack
    problem: str
    hosts: tuple[str, ...]
