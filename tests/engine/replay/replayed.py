"""A script done by this project's engine, as lines of a transcript."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compactor.api.managed_cleaning import Cleaner
from compactor.outcome.round_report import CleaningReport, LogReport
from compactor.settings.rules import RunOptions
from storage.files.files import Files
from storage.kafka_versions import BY_NAME, KafkaVersion
from storage.log.lazy_kernels import COMPILED
from storage.log.log_manager import LogCleaner
from tests.engine.replay.replay import Replay
from tests.engine.replay.script_cleaning import CleanerMaker
from tests.engine.replay.script_values import ScriptError
from tests.oracle import versions


def replayed(
    files: Files,
    log_dir: str,
    script: Sequence[dict[str, Any]],
    reports: dict[int, LogReport] | None = None,
) -> list[dict[str, Any]]:
    """Do a script in a directory. What it tells has been through JSON, as Kafka's has.

    reports: is given those of its cleanings, by the numbers of their lines.
    """
    told: list[dict[str, Any]] = []

    def note(report: CleaningReport) -> None:
        if reports is not None:
            reports[len(told) + 1] = report.logs[0]

    try:
        for line in replay_in(files, log_dir, note).lines(script):
            told += [json.loads(json.dumps(line))]
    except ScriptError as error:  # Kafka's has no bytes of a batch where it had no log to append to
        told += [{"op": script[len(told)]["op"], "error": f"ScriptError: {error}"}]
    return told


def replay_in(
    files: Files, log_dir: str, on_report: Callable[[CleaningReport], object] = lambda _: None
) -> Replay:
    """A replay in a directory of a local disk.

    on_report: is given the report of each cleaning, too.
    """
    kafka = BY_NAME[versions.chosen().name]
    return Replay(files, log_dir, cleaner_beside(log_dir, kafka, on_report), kafka)


def cleaner_beside(
    directory: str,
    kafka: KafkaVersion,
    on_report: Callable[[CleaningReport], object] = lambda _: None,
) -> CleanerMaker:
    """Cleaners as Kafka's for the logs of a script: in this process, with files of their own beside
    the directory of the script."""

    def make_cleaner(
        map_capacity: int | None, wanted: Callable[[CleaningReport], object]
    ) -> LogCleaner:
        def both(report: CleaningReport) -> None:
            on_report(report)
            wanted(report)

        options = RunOptions(in_process=True, drop_null_keys=True, map_capacity=map_capacity)
        work_dir = os.path.dirname(os.path.abspath(directory))
        return Cleaner(work_dir, options, both, rewrites_all=True, kafka=kafka.name)

    return make_cleaner


@contextmanager
def kernels_used(wanted: bool) -> Iterator[None]:
    """Whether the engine uses its kernels from the first byte on, or never."""
    before = COMPILED.kernels, COMPILED.left_bytes
    COMPILED.kernels, COMPILED.left_bytes = None, 0 if wanted else 1 << 62
    try:
        assert (COMPILED.kernels_for(1) is not None) == wanted
        yield
    finally:
        COMPILED.kernels, COMPILED.left_bytes = before
