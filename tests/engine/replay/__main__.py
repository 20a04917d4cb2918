"""`log replay`: a script of operations on one log, with what came of each."""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from compactor import account
from compactor.api.changes import note_changes
from compactor.api.managed_cleaning import Cleaner
from compactor.api.places import in_place
from compactor.api.rules import RunOptions
from compactor.config import kafka_choice
from compactor.exit_codes import UsageError
from tests.engine.replay.replay import Replay
from compactor.round_report import CleaningReport
from storage.files.local import LOCAL
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.manager.log_cleaner import LogCleaner


def replay(script: str, directory: str, kafka: str | None = None) -> Iterator[dict[str, Any]]:
    """Do the lines of a script in a new or empty log directory; yield those of its transcript.

    kafka: whose answer is given; None: that of the newest version that is known.
    The script is a file of JSON objects, one a line. Each line is done when it is asked for. Raise
    UsageError for a directory with anything in it, or a script that cannot be read; a
    LogCompactionError for a line that asks for what there is not.
    """
    account.current().note_log_dirs([directory])
    version = NEWEST if kafka is None else kafka_choice(kafka, "kafka").version
    lines = _lines(in_place("SCRIPT", script), script)
    local = in_place("DIR", directory)
    if LOCAL.exists(local) and LOCAL.list_directory(local):
        raise UsageError(f"DIR {directory}: is not empty; a replay takes a new directory")
    return _transcript(lines, local, version)


def _transcript(
    lines: list[dict[str, Any] | None], local: str, version: KafkaVersion
) -> Iterator[dict[str, Any]]:
    make_cleaner = partial(cleaner_beside, local, kafka=version.name)
    try:
        yield from Replay(LOCAL, local, make_cleaner, version).lines(lines)
    except Exception as error:
        note_changes(error, f"The log in {local} is as the lines before have left it.")
        raise


def cleaner_beside(
    directory: str,
    map_capacity: int | None,
    on_report: Callable[[CleaningReport], object],
    kafka: str | None = None,
) -> LogCleaner:
    """A cleaner as Kafka's for the logs of a script: in this process, with files of its own beside
    the directory of the script."""
    options = RunOptions(in_process=True, drop_null_keys=True, map_capacity=map_capacity)
    work_dir = os.path.dirname(directory)
    return Cleaner(work_dir, options, on_report, makes_all_anew=True, kafka=kafka)


def _lines(path: str, script: str) -> list[dict[str, Any] | None]:
    """The lines of a script; None for one that is empty or begins with #."""
    found: list[dict[str, Any] | None] = []
    try:
        text = LOCAL.read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"SCRIPT {script}, byte {error.start}: not UTF-8") from error
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line) if line.strip() and not line.startswith("#") else None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"SCRIPT {script}, line {number}: {error}") from error
        if value is not None and not (isinstance(value, dict) and "op" in value):
            raise UsageError(f'SCRIPT {script}, line {number}: expected an object with an "op"')
        found.append(value)
    return found
