"""A cleaner that a reader can follow: the last record of each key stays, and a deletion goes once
it lies in the part that was cleaned before. Each batch has one record."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.files.files import Files
from storage.formats.checkpoint import TopicPartition
from storage.log.log_manager import CleanedLog, LogToClean
from storage.log.log_state import CleanedGroup
from tests.support.reference_batch import ReferenceRecord, decode, split


def record_of(batch: bytes) -> ReferenceRecord:
    [record] = decode(batch).records
    return record


def batches_of(log: LogToClean) -> dict[int, list[bytes]]:
    """Of each closed segment, by its base offset."""
    return {
        segment.base_offset: list(split(segment.log.read(0, segment.size_bytes)))
        for segment in log.view.segments[:-1]
    }


def left_of(log: LogToClean) -> dict[int, list[bytes]]:
    """What stays of each closed segment."""
    start, end, clean = log.view.log_start, log.view.log_end, log.first_dirty
    dirty = clean if clean is not None and start <= clean <= end else start  # C-4.1
    segments = batches_of(log)
    last: dict[bytes | None, int] = {}
    for batches in segments.values():
        for record in map(record_of, batches):
            if record.offset >= dirty:
                last[record.key] = record.offset

    def stays(batch: bytes) -> bool:
        record = record_of(batch)
        is_gone = record.value is None and record.offset < dirty
        return not is_gone and record.offset >= last.get(record.key, -1)

    return {base: list(filter(stays, batches)) for base, batches in segments.items()}


class KeyCleaner:
    """Notes how far it has cleaned each log, before anybody may truncate it."""

    def __init__(self, files: Files, work_dir: str) -> None:
        """work_dir: begins a name; in no log directory."""
        self._files, self._work_dir, self._rounds = files, work_dir, 0
        self.cleaned_to: dict[TopicPartition, int | None] = {}  # None: nobody knows

    @contextmanager
    def cleaned(self, logs: Sequence[LogToClean], _: int) -> Iterator[list[CleanedLog]]:
        yield [self._cleaned(log) for log in logs]
        for log in logs:
            self.cleaned_to[log.partition] = log.active_base

    def _cleaned(self, log: LogToClean) -> CleanedLog:
        self._rounds += 1
        place = f"{self._work_dir}{self._rounds}"
        self._files.make_directory(place)
        groups = []
        for base, batches in left_of(log).items():
            for kind, data in ((LOG, b"".join(batches)), (INDEX, b""), (TIME_INDEX, b"")):
                self._files.replace_file(f"{place}/{file_name(base, kind)}", data)
            groups.append(CleanedGroup(place, (base,), (base,)))
        return CleanedLog(log.partition, tuple(groups), log.active_base)
