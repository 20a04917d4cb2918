"""The lines of scripts in few words. A batch of one record with a key and a value of one byte has
70 bytes."""

from collections.abc import Sequence
from typing import Any

from tests.engine.rules.case import NOW_MS, Line, Seen

AS_FOLLOWER: Line = {"as": "follower"}
OPEN: Line = {"op": "open"}
CLOSE: Line = {"op": "close"}
CRASH: Line = {"op": "crash"}
ROLL: Line = {"op": "roll"}
FILES: Line = {"op": "files"}
RETENTION: Line = {"op": "retention"}
SNAPSHOT: Line = {"op": "snapshot"}
TO_END: Line = {"op": "high_watermark", "offset": "end"}
ENDS: Line = {"op": "offset_snapshot"}
EXPIRE: Line = {"op": "expire_producers"}
LATE: Line = {"op": "late_txn"}
VERIFYING: Line = {"op": "broker", "transaction.partition.verification.enable": True}
VERIFY: Line = {"op": "verify_txn", "pid": 1, "epoch": 0, "seq": 0, "supports_epoch_bump": False}
_SHORT = {
    "bases": "segments.*.base_offset",
    "sizes": "segments.*.log",
    "indexes": "segments.*.index",
    "time_indexes": "segments.*.timeindex",
    "txn_indexes": "segments.*.txnindex",
    "pids": "producers.*.pid",
    "last_seqs": "producers.*.last_seq",
    "open_txns": "producers.*.current_txn_first_offset",
}


def config(**settings: Any) -> Line:
    return {"op": "config", **{name.replace("_", "."): str(v) for name, v in settings.items()}}


def clock(advance: int) -> Line:
    return {"op": "clock", "advance": advance}


def opened(**fields: Any) -> Line:
    return {"op": "open", **fields}


def record(ts: int = NOW_MS, key: str | None = "k", value: str | None = "v") -> Line:
    return {"k": key, "v": value, "ts": ts}


def one(ts: int = NOW_MS, **more: Any) -> Line:
    """An append of one record."""
    return {"op": "append", "records": [record(ts)], **more}


def many(*times: int, **more: Any) -> Line:
    """An append of one batch with a record for each time."""
    return {"op": "append", "records": [record(ts) for ts in times], **more}


def follower(base_offset: int | str, ts: int = NOW_MS, **more: Any) -> Line:
    return one(ts, **{"as": "follower", "base_offset": base_offset, **more})


def together(*batches: Line, **more: Any) -> Line:
    """Several batches in one append of a follower."""
    return {"op": "append", "as": "follower", "batches": [*batches], **more}


def by(seq: int | str, pid: int = 1, **more: Any) -> Line:
    """An append of a producer."""
    return one(**{"pid": pid, "epoch": 0, "seq": seq, **more})


def in_txn(seq: int, pid: int = 1, **more: Any) -> Line:
    return by(seq, pid, txn=True, **more)


def marker(commit: bool = True, pid: int = 1, **more: Any) -> Line:
    return {"op": "end_txn", "pid": pid, "epoch": 0, "commit": commit, **more}


def read(offset: int | str, isolation: str = "log_end", **more: Any) -> Line:
    return {"op": "read", "offset": offset, "isolation": isolation, **more}


def at_time(ts: int | str) -> Line:
    return {"op": "offset_for_timestamp", "ts": ts}


def high_watermark(offset: int | str, how: str = "set") -> Line:
    return {"op": "high_watermark", "offset": offset, "how": how}


def truncate(offset: int | str) -> Line:
    return {"op": "truncate_to", "offset": offset}


def begin_at(offset: int, **more: Any) -> Line:
    return {"op": "truncate_fully", "offset": offset, **more}


def log_start(offset: int | str) -> Line:
    return {"op": "delete_records", "offset": offset}


def flush(**more: Any) -> Line:
    return {"op": "flush", **more}


def epoch(number: int, offset: int | str) -> Line:
    return {"op": "assign_epoch", "epoch": number, "offset": offset}


def epoch_end(number: int) -> Line:
    return {"op": "epoch_end_offset", "epoch": number}


def damage(how: str, **more: Any) -> Line:
    return {"op": "damage", "how": how, **more}


def mtime(segment: int, ms: int) -> Line:
    return {"op": "mtime", "segment": segment, "ms": ms}


def state(**values: Any) -> Seen:
    """What the state is after the line before."""
    return Seen({f"state.{_SHORT.get(name, name)}": value for name, value in values.items()})


def result(value: object = None, **values: Any) -> Seen:
    """What the line before gave: the whole of it, or some fields."""
    if not values:
        return Seen({"error": None, "result": value})
    return Seen({"error": None, **{f"result.{name}": each for name, each in values.items()}})


def ok() -> Seen:
    return Seen({"error": None})


def fails(error: str, cause: str | None = None) -> Seen:
    seen: dict[str, object] = {"error": error}
    return Seen(seen if cause is None else {**seen, "cause": cause})


def found(offset: int, timestamp: int, leader_epoch: int | None = 0) -> Seen:
    """The answer to a look-up by time."""
    return result({"timestamp": timestamp, "offset": offset, "leader_epoch": leader_epoch})


def place(offset: int, segment: int = 0, position: int = 0) -> Line:
    return {"offset": offset, "segment": segment, "position": position}


def batches(*bounds: Sequence[int]) -> Seen:
    """The batches of a read: first offset, last offset, size."""
    return Seen({"error": None, "result.batches": [list(each) for each in bounds]})


def files(*names: str) -> Seen:
    """The names of all files, those of checkpoints in the log directory and its marker left out."""
    return Seen({"files": sorted(names)})


def lines(name: str, *values: str) -> Seen:
    """What stands in a checkpoint file, after a line that lists files."""
    return Seen({f"lines {name}": sorted(values)})


def refused(cause: str, *positions: int) -> Seen:
    """Records of a batch were refused, each for itself."""
    error = "RecordValidationException"
    return Seen({"error": error, "cause": cause, "records": list(positions)})
