"""`log read` and `log offsets`: one log as a starting broker would find it.

No file is changed, no lock taken.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from compactor.api import path_arguments
from compactor.api.as_of import as_of_ms
from compactor.api.path_arguments import log_dir_around
from compactor.api.round_context import read_round_context
from compactor.errors import UsageError
from compactor.offline_log.log_location import LogLocation, find_log, known_offsets
from compactor.offline_log.log_offsets import LogOffsets, offsets_of
from compactor.offline_log.log_tail import LogTail
from compactor.offline_log.open_log import ViewedLog, log_settings, view_log
from compactor.offline_log.record_filter import ReadRecord, RecordFilter
from compactor.offline_log.record_tables import rows_of, write_parquet
from compactor.settings.rules import (
    KAFKAS_DEFAULTS,
    Isolation,
    ReadOptions,
    Rules,
)
from storage.arguments import PathArg
from storage.files.local import LOCAL
from storage.log.log import Log

POLL_SECONDS = 0.5

OnHidden = Callable[[Sequence[str]], object]


EVERYTHING = ReadOptions()


def log_read(
    log_dir: PathArg,
    topic_partition: str,
    options: ReadOptions = EVERYTHING,
    on_hidden: OnHidden | None = None,
) -> Iterator[list[ReadRecord]]:
    """Yield the records of a log, some at a time; markers of transactions are none.

    on_hidden: is called with the files of which a starting broker would cut off a part, which is
    not read. Raise UsageError, CorruptFileError after the last record before damage, and OSError.
    """
    at = _find(log_dir, topic_partition)
    with _viewed(at, options, on_hidden) as view:
        yield from rows_of(view, _wanted(view.log, options))


def log_follow(
    log_dir: PathArg,
    topic_partition: str,
    options: ReadOptions = EVERYTHING,
    wait: Callable[[], object] = lambda: time.sleep(POLL_SECONDS),
) -> Iterator[list[ReadRecord]]:
    """Yield the records of a log, and then those that are appended, as long as the caller goes on.

    A list without records means that nothing is new. Only with isolation log-end and without an
    end.

    wait: is called each time that nothing is new.
    """
    if options.isolation != Isolation.LOG_END:
        problem = f"expected {Isolation.LOG_END}, as far as a log is followed"
        raise UsageError(problem, "isolation", options.isolation)
    if options.end is not None:
        raise UsageError("a log that is followed has no end", "end", options.end)
    at, left = _find(log_dir, topic_partition), options.limit
    with _viewed(at, options, None) as view:
        tail = LogTail(at, view.log.log_end_offset, LOCAL)
        for records in rows_of(view, _wanted(view.log, options)):
            yield records
            left = None if left is None else left - len(records)
    while left is None or left > 0:
        is_new = False
        for records in tail.new_records():
            found = [r for r in records if options.key is None or r.key == options.key]
            found = found if left is None else found[:left]
            left = None if left is None else left - len(found)
            is_new = True
            yield found
            if left == 0:
                return
        if not is_new:
            yield []
            wait()


def log_to_parquet(
    log_dir: PathArg,
    topic_partition: str,
    path: PathArg,
    options: ReadOptions = EVERYTHING,
    on_hidden: OnHidden | None = None,
) -> int:
    """Write records to a Parquet file, with every column of `storage.arrow`; return how many.

    Raises as `log_read` does, and then leaves no file.
    """
    output = path_arguments.in_place("path", path)
    at = _find(log_dir, topic_partition)
    if log_dir_around(output, [at.log_dir]) is not None:
        raise UsageError(f"inside of log directory {at.log_dir}", "path", path)
    path_arguments.require_writable("path", output)
    with _viewed(at, options, on_hidden) as view:
        return write_parquet(view, _wanted(view.log, options), output, LOCAL)


def _find(log_dir: PathArg, topic_partition: str) -> LogLocation:
    (path,) = path_arguments.log_dirs([log_dir], to_write=False)
    return find_log(path, topic_partition, LOCAL)


@contextmanager
def _viewed(
    at: LogLocation, options: ReadOptions, on_hidden: OnHidden | None
) -> Iterator[ViewedLog]:
    context = read_round_context(options.rules, [at.log_dir])
    settings = log_settings(at.topic, context.config, context.as_of_ms)
    with view_log(at, known_offsets(at, LOCAL), settings, LOCAL) as view:
        if on_hidden is not None and view.hidden:
            on_hidden(view.hidden)
        yield view


def _wanted(log: Log, options: ReadOptions) -> RecordFilter:
    if options.isolation not in list(Isolation):
        known = ", ".join(Isolation)
        raise UsageError(f"expected one of {known}", "isolation", options.isolation)
    return RecordFilter(
        start_offset=_offset(log, "first", options.first),
        end_offset=None if options.end is None else _offset(log, "end", options.end),
        isolation=Isolation(options.isolation),
        max_bytes=options.max_bytes,
        limit=options.limit,
        key=options.key,
    )


def _offset(log: Log, name: str, bound: str | int | datetime) -> int:
    """Turn an offset, a time or `start` into an offset; a time after all records is the end."""
    text = str(bound)
    if text == "start":
        return log.log_start_offset
    if re.fullmatch(r"[0-9]{1,19}", text, re.ASCII):
        return min(int(text), log.log_end_offset)
    try:
        time_ms = as_of_ms(text.removeprefix("@"), name)
    except UsageError as error:
        raise UsageError(
            f"{error.problem}; an offset, or start, will do as well", name, error.value
        ) from error
    found = log.offset_by_timestamp(time_ms)
    return log.log_end_offset if found is None else found.offset


def log_offsets(
    log_dir: PathArg,
    topic_partition: str,
    times_ms: Sequence[int] = (),
    rules: Rules = KAFKAS_DEFAULTS,
) -> LogOffsets:
    """Return where a log begins and ends, how far it is replicated, and its open transactions.

    times_ms: for each, the first record that is not older; -2 and -1 for the first and the next
    offset, -3 for the record with the largest time. Beside a broker the answer is one of a moment.
    Raise UsageError if the log does not exist, CorruptFileError where a checkpoint is damaged.
    """
    (path,) = path_arguments.log_dirs([log_dir], to_write=False)
    at = find_log(path, topic_partition, LOCAL)
    context = read_round_context(rules, [path])
    settings = log_settings(at.topic, context.config, context.as_of_ms)
    with view_log(at, known_offsets(at, LOCAL), settings, LOCAL) as view:
        return offsets_of(at.name, view, times_ms)
