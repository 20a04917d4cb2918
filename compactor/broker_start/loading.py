"""Rehearse how a broker loads the logs of a directory that was left in good order.

After a clean shutdown a broker reads of each log no more than names and the end of the last
segment, and so does this module. Nothing is changed. Source: Kafka, LogLoader.load; spec F-16.1,
L-25.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from compactor.host.shell_commands import compactor, in_turn, named, tool
from compactor.log_dirs.missing_logs import why_cut_short, why_start_gone
from compactor.outcome.start_problems import DirectoryFiles, StartOutcome, StartProblem
from storage.errors import CorruptFileError
from storage.file_names import LOG, SWAP
from storage.files.files import Files
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.errors import KafkaStorageError, LogError
from storage.log.loading import LoadingState, LogOptions, options_at, rehearsed
from storage.log.log_config import LogConfig
from storage.log.log_dir import list_partition, log_end_offset, partition_of

_OPEN_FILES = 32


def problems_of_ends(
    directory: DirectoryFiles, is_clean: bool, files: Files
) -> Iterator[StartProblem]:
    """Look at the ends of each log: after an unclean shutdown not at what is torn or cut short.

    A broker cuts that off then.
    """
    known = _checkpoints(directory)
    for path, key in _logs(directory):
        found = _of_end(path, key, known, files, is_clean)
        if found is not None:
            yield found


def problems_of_loading(
    directory: DirectoryFiles, now_ms: int, files: Files
) -> Iterator[StartProblem]:
    """Load each log, too, which takes some milliseconds for each."""
    known = _checkpoints(directory)
    for path, key in _logs(directory):
        problem = _rehearsed(path, known[checkpoint.LOG_START].get(key, 0), now_ms, files)
        problem = problem or _of_end(path, key, known, files)
        if problem is not None:
            yield problem


def options_at_start(
    log_start: int, now_ms: int, files: Files, is_clean: bool = True
) -> LogOptions:
    """Of a log as a broker that starts loads it, with Kafka's defaults."""
    return options_at(
        now_ms,
        config=LogConfig(file_delete_delay_ms=0),
        files=files,
        state=LoadingState(is_clean=is_clean, log_start=log_start),
        max_open_files=_OPEN_FILES,
    )


def _logs(directory: DirectoryFiles) -> Iterator[tuple[str, TopicPartition]]:
    for log in directory.logs:
        key = partition_of(log.dir_name)
        if key is not None:
            yield os.path.join(directory.path, log.dir_name), key


def _checkpoints(directory: DirectoryFiles) -> dict[str, dict[TopicPartition, int]]:
    found: dict[str, dict[TopicPartition, int]] = {}
    for name in (checkpoint.LOG_START, checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        found[name] = {}
        with suppress(CorruptFileError):  # which has a problem of its own
            found[name] = checkpoint.decode(directory.checkpoints.get(name) or b"", name)
    return found


def _of_end(
    path: str,
    key: TopicPartition,
    known: Mapping[str, Mapping[TopicPartition, int]],
    files: Files,
    is_clean: bool = True,
) -> StartProblem | None:
    log_start = known[checkpoint.LOG_START].get(key, 0)
    try:
        log = list_partition(path, *key, files, with_files=False)
        end = log_end_offset(log) if log.segments else log_start
        is_to_grow = any(name.endswith(LOG + SWAP) for name in log.unfinished)
        if is_to_grow:
            options = options_at_start(log_start, 0, files)
            end = rehearsed(path, options).end_offset  # puts them in place
    except (FileNotFoundError, LogError):  # gone meanwhile; a loading fails, which is said of that
        return None
    except CorruptFileError as error:
        if not is_clean:
            return None
        log_dir = os.path.dirname(path)
        unmarked = tool("rm", "--", os.path.join(log_dir, CLEAN_SHUTDOWN))
        return StartProblem(
            outcome=StartOutcome.LOADED_WITH_LOSS,
            path=error.path,
            problem=f"{error.problem}; after a clean shutdown a broker does not look there, and "
            "appends behind it",
            repair=f"Without {CLEAN_SHUTDOWN} a broker cuts such an end off; {named('recover')} "
            "looks first whether anything sound is behind it.",
            command=in_turn(unmarked, compactor("recover", log_dir)),
        )
    if end >= log_start:
        has_records = is_clean and (log.segments or is_to_grow)
        cut_short = why_cut_short(key, end, known) if has_records else None
        if cut_short is not None:
            return _without_its_end(path, cut_short)
        gone = why_start_gone(log, known[checkpoint.LOG_START])
        return None if gone is None else _without_its_start(path, gone)
    starts = os.path.join(os.path.dirname(path), checkpoint.LOG_START)
    name = os.path.basename(path)
    return StartProblem(
        outcome=StartOutcome.LOADED_WITH_LOSS,
        path=starts,
        problem=f"{name} ends at offset {end}, before its log start {log_start}: a broker deletes "
        "every segment",
        repair="Bring the missing segments back, or empty this file: the records that are there, "
        "and those that kafka-delete-records removed, then stay.",
        command=tool("truncate", "-s", "0", starts),
    )


def _without_its_end(path: str, cut_short: str) -> StartProblem:
    return StartProblem(
        outcome=StartOutcome.LOADED_WITH_LOSS,
        path=path,
        problem=cut_short,
        repair="Bring its last files back from a backup, or the log from another replica.",
    )


def _without_its_start(path: str, gone: str) -> StartProblem:
    return StartProblem(
        outcome=StartOutcome.LOADED_WITH_LOSS,
        path=path,
        problem=gone,
        repair="Bring its first files back from a backup, or the log from another replica. If "
        f"somebody has removed them on purpose, remove {LEADER_EPOCH_CHECKPOINT} in it: a broker "
        "makes a new one.",
    )


def _rehearsed(path: str, log_start: int, now_ms: int, files: Files) -> StartProblem | None:
    """What Kafka's loader fails on."""
    try:
        rehearsed(path, options_at_start(log_start, now_ms, files))
    except LogError as error:
        is_offline = isinstance(error, KafkaStorageError) and isinstance(error.__cause__, OSError)
        outcome = StartOutcome.DIRECTORY_OFFLINE if is_offline else StartOutcome.BROKER_ENDS
        problem = f"{error.kafka_name}: {error}"
    except OSError as error:
        outcome = StartOutcome.DIRECTORY_OFFLINE
        problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    else:
        return None
    return StartProblem(
        outcome=outcome,
        path=path,
        problem=problem,
        repair="Bring the file that is named back from a backup, or the log from another replica.",
    )
