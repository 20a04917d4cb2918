"""What Spark shows of a job and of its stages: run, phase, and the logs that it is about."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SHOWN_LOGS = 5


class JobGroup(NamedTuple):
    """What jobs are cancelled by, and what they are shown as."""

    name: str  # the work directory of their run, and what they do
    description: str


class RunDescription(NamedTuple):
    """A run, as its jobs are shown."""

    run_id: str
    logs: Mapping[int, str]  # TOPIC-PARTITION by log id

    def of_stage(self, stage: str, tasks: Sequence[Mapping[str, Any]]) -> str:
        """Like `compactor 5c0d7f21 scan: orders-0, orders-1 and 40 more`."""
        ids = log_ids_of(tasks)
        shown = ", ".join(self.logs[log_id] for log_id in ids[:SHOWN_LOGS])
        more = f" and {len(ids) - SHOWN_LOGS:,} more" if len(ids) > SHOWN_LOGS else ""
        return f"compactor {self.run_id} {stage}: {shown}{more}"


def log_ids_of(tasks: Sequence[Mapping[str, Any]]) -> list[int]:
    """Of the logs that tasks are about, each once, as they come.

    Whatever a task has of a log begins with its id: a stretch, rules, or parts and their log.
    """
    found: dict[int, None] = {}
    for task in tasks:
        for value in (*task.get("stretches", ()), *task.get("logs", ())):
            while not isinstance(value, int):
                value = value[0]
            found[value] = None
    return list(found)
