"""What became of damaged logs, and whether it may be."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from compactor.outcome.round_report import LogReport, LogStatus
from tests.compactor.plan_logs import plan_log_dirs
from tests.damage.damaged_logs import (
    Case,
    Files,
    config_of,
    files_in,
    sound_log,
    write_log_dir,
)
from tests.damage.slow_reader import reader_view
from tests.golden import corpora
from tests.support.local_round import LocalRound
from tests.support.reference_batch import split

LEADER_EPOCH = slice(12, 16)  # of a batch; no checksum covers it (F-4.2)


class Ending(StrEnum):
    SET_ASIDE = "set aside with file and byte, every byte as it was"
    AS_KAFKA = "cleaned to what Kafka makes of the sound log"
    NOTED = "cleaned as Kafka does with such a file, and the report says what is different"
    LEFT = "passed over, every byte as it was"
    VIEW_KEPT = "cleaned otherwise, every reader's view kept"
    SILENT = "SILENT: something else came out"
    UNTYPED = "UNTYPED: an error without file and byte"


@dataclass(frozen=True, slots=True)
class Found:
    case: Case
    ending: Ending
    told: str


def endings(cases: Sequence[Case], local: LocalRound, root: Path) -> list[Found]:
    """Damage a log for each case, take all through one round, and judge what it left."""
    named = write_log_dir(root, cases)
    before = {name: files_in(root / name) for name in named}
    plan = plan_log_dirs(
        [str(root)], config_of(named, root.parent / f"{root.name}.json"), corpora.now_ms()
    )
    report = local.run(plan)
    reports = {f"{log.topic}-{log.partition}": log for log in report.logs}
    return [_judged(root / name, case, before[name], reports[name]) for name, case in named.items()]


def _judged(partition: Path, case: Case, before: Files, log: LogReport) -> Found:
    after, told = files_in(partition), f"{log.status}: {log.reason}"
    if log.status is LogStatus.SET_ASIDE:
        is_typed = re.match(rf"{re.escape(str(partition))}/\S+, byte \d+: ", log.reason or "")
        return Found(
            case, _untouched(before, after, Ending.SET_ASIDE if is_typed else Ending.UNTYPED), told
        )
    if log.status is LogStatus.PASSED_OVER:
        return Found(case, _untouched(before, after, Ending.LEFT), told)
    if log.status is not LogStatus.CLEANED:
        return Found(case, Ending.UNTYPED, told)
    sound = sound_log(case.source)
    left = case.file.endswith(".log") and int(case.file[:20]) >= sound.end_offset
    want = {**sound.after, case.file: before[case.file]} if left else sound.after
    if _logs(after, sound.end_offset) == _logs(want, sound.end_offset):
        return Found(case, Ending.AS_KAFKA, told)
    if any("in no .txnindex" in note for note in log.notes):
        return Found(case, Ending.NOTED, told)
    try:
        view_is_kept = reader_view(before) == reader_view(after)
    except Exception as error:  # the slow reader finds damage in what was cleaned, or left of it
        return Found(case, Ending.SILENT, f"{told}, yet {error!r}")
    return Found(case, Ending.VIEW_KEPT if view_is_kept else Ending.SILENT, told)


def _untouched(before: Files, after: Files, ending: Ending) -> Ending:
    return ending if before == after else Ending.SILENT


def _logs(files: Files, end_offset: int) -> dict[str, list[bytes]]:
    """The batches of each segment that was cleaned, without what nobody checks; other segments."""
    return {
        name: [_masked(raw) for raw in split(data)] if int(name[:20]) < end_offset else [data]
        for name, data in files.items()
        if name.endswith(".log")
    }


def _masked(batch: bytes) -> bytes:
    return batch[: LEADER_EPOCH.start] + batch[LEADER_EPOCH.stop :]
