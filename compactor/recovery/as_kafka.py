"""A log loaded and closed again, as by a broker that starts and stops: `recover --as-kafka`.

Whatever a broker does with what it finds is done, also where that loses what is sound: the storage
engine works on the files themselves, in its own order, which a crash may cut short anywhere.

Source: Kafka, LogManager.loadLog, LogLoader, UnifiedLog.close; spec L-24, L-25.
"""

import os
from typing import NamedTuple
from zlib import crc32

from compactor.recovery.settling import left_after_loading
from storage.file_names import CLEANED, LOG, SWAP
from storage.files.files import Files, size_of
from storage.log.log import Log
from storage.log.opening import LogOptions, opened_parts


class LoadedAsKafka(NamedTuple):
    """What has become of the files of a log, by their names."""

    finished: tuple[str, ...]  # of a swap, put in place
    undone: tuple[str, ...]  # of a cleaning or a swap that was not complete
    removed: tuple[str, ...]
    rebuilt: tuple[str, ...]
    truncated: str | None
    log_start_offset: int
    end_offset: int


def load_as_kafka(path: str, options: LogOptions) -> LoadedAsKafka:
    """Load a log and close it, then remove what dead runs have left beside it.

    Raise a LogError where no log comes of it, and OSError; what was done by then stays done, as in
    Kafka.
    """
    files = options.files
    before = _contents(files, path)
    log = Log(opened_parts(path, options))  # who recovers has the lock, and has asked for marks
    try:
        log.prepare_for_close()
        log.flush(force=True)
        log.close()
    except BaseException:
        log.close_handlers()
        raise
    files.sync_directory(path)
    for name in left_after_loading(files.list_names(path)[1]):
        files.remove(os.path.join(path, name))
    return _compared(before, _contents(files, path), log)


class _Content(NamedTuple):
    size_bytes: int
    checksum: int  # 0 of a `.log`


def _contents(files: Files, path: str) -> dict[str, _Content]:
    return {name: _content(files, os.path.join(path, name)) for name in files.list_names(path)[1]}


def _content(files: Files, path: str) -> _Content:
    if LOG in os.path.basename(path):  # with its suffix, if it has one
        return _Content(size_of(files, path), 0)
    data = files.read_bytes(path)
    return _Content(len(data), crc32(data))


def _compared(before: dict[str, _Content], after: dict[str, _Content], log: Log) -> LoadedAsKafka:
    gone = before.keys() - after.keys()
    swapped = {name.removesuffix(SWAP) for name in gone if name.endswith(SWAP)}
    finished = {name for name in swapped if after.get(name, 0) != before.get(name, 0)}
    undone = {n for n in gone if n.endswith(CLEANED) or n.removesuffix(SWAP) in swapped - finished}
    changed = {name for name in after if after[name] != before.get(name)} - finished
    cut = {name for name in changed if name.endswith(LOG) and name in before}
    told = [
        f"{name} from {before[name].size_bytes:,} to {after[name].size_bytes:,} bytes"
        for name in sorted(cut)
    ]
    return LoadedAsKafka(
        finished=tuple(sorted(finished)),
        undone=tuple(sorted(undone)),
        removed=tuple(sorted(gone - undone - {name + SWAP for name in finished})),
        rebuilt=tuple(sorted(changed - cut)),
        truncated="; ".join(told) or None,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset,
    )
