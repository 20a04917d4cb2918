"""What Kafka's loader does to the files of a partition, slow and obvious: C-15.5 to C-15.7, F-16.1.

For tests without Kafka. `python -m tests.crash` tries Kafka's own on the same states, and holds
this one against it.
"""

from pathlib import Path

from storage.file_names import CLEANED, DELETED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX, file_name
from tests.crash.stories import INTERVAL_BYTES
from tests.support.reference_batch import decode, split
from tests.support.reference_files import indexes

INDEX_KINDS = (INDEX, TIME_INDEX, TXN_INDEX)
ZEROS = bytes(8)  # of an index that the loader makes for a .log.swap without one; there 10 MiB


def load_log_dir(log_dir: Path) -> None:
    for partition in log_dir.iterdir():
        if partition.is_dir():
            load(partition)


def load(partition: Path) -> None:
    _remove_unfinished(partition)
    _remove_replaced(partition)
    for path in _ending_in(partition, SWAP):
        path.rename(path.with_suffix(""))
    for kind in INDEX_KINDS:
        for path in _ending_in(partition, kind):
            if not path.with_suffix(LOG).exists():
                path.unlink()
    for path in _ending_in(partition, LOG):
        if not path.with_suffix(INDEX).exists():
            offset_index, time_index = indexes(
                split(path.read_bytes()), _offset(path), INTERVAL_BYTES
            )
            path.with_suffix(INDEX).write_bytes(offset_index)
            path.with_suffix(TIME_INDEX).write_bytes(time_index)
        elif not path.with_suffix(TIME_INDEX).exists():
            path.with_suffix(TIME_INDEX).write_bytes(b"")


def _remove_unfinished(partition: Path) -> None:
    """C-15.5."""
    for path in _ending_in(partition, DELETED):
        path.unlink()
    cleaned = _ending_in(partition, CLEANED)
    lowest = min(map(_offset, cleaned), default=2**63)
    for path in _ending_in(partition, SWAP):
        if _offset(path) >= lowest:
            path.unlink()
    for path in cleaned:
        path.unlink()


def _remove_replaced(partition: Path) -> None:
    """C-15.6."""
    swapped = _ending_in(partition, LOG + SWAP)
    low = min(map(_offset, swapped), default=0)
    high = max(map(_next_offset, swapped), default=0)
    for path in swapped:
        index = partition / (file_name(_offset(path), INDEX) + SWAP)
        if not index.exists():
            index.write_bytes(ZEROS)
    for path in partition.iterdir():
        digits = path.name.partition(".")[0]
        if digits.isdigit() and path.suffix != SWAP and low <= int(digits) < high:
            path.unlink()


def _next_offset(path: Path) -> int:
    offsets = [decode(raw, with_records=False).last_offset for raw in split(path.read_bytes())]
    return max(offsets) + 1 if offsets else _offset(path)


def _ending_in(partition: Path, suffix: str) -> list[Path]:
    return sorted(path for path in partition.iterdir() if path.name.endswith(suffix))


def _offset(path: Path) -> int:
    return int(path.name.partition(".")[0])
