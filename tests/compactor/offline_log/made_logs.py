"""Log directories of a broker that stopped, made by a script of the engine; and what is in them."""

from pathlib import Path
from typing import Any

from storage.files.local import LOCAL
from tests.engine.replay.replayed import replayed

CLOCK_MS = 1_700_000_000_000
Line = dict[str, Any]

# two transactions of producer 7 and one that is left open of producer 8, in three segments
SMALL: list[Line] = [
    {"op": "partition", "topic": "orders", "partition": 0},
    {"op": "config", "file.delete.delay.ms": "0", "index.interval.bytes": "0"},
    {"op": "settings", "follow_high_watermark": True},
    {"op": "open"},
    {"op": "append", "leader_epoch": 0, "records": [{"k": "a", "v": "1", "ts": CLOCK_MS - 5000}]},
    {"op": "append", "leader_epoch": 0, "pid": 7, "epoch": 0, "seq": 0, "txn": True,
     "records": [{"k": "b", "v": "2", "ts": CLOCK_MS - 4000}, {"k": "c", "ts": CLOCK_MS - 3900}]},
    {"op": "end_txn", "pid": 7, "epoch": 0, "commit": True},
    {"op": "roll"},
    {"op": "append", "leader_epoch": 3, "pid": 7, "epoch": 0, "seq": 2, "txn": True,
     "records": [{"k": "a", "v": "gone", "ts": CLOCK_MS - 3000}]},
    {"op": "end_txn", "pid": 7, "epoch": 0, "commit": False, "leader_epoch": 3},
    {"op": "append", "leader_epoch": 3, "codec": "zstd", "records": [
        {"k": "a", "v": "3", "ts": CLOCK_MS - 2000, "h": [["trace", "x"], ["none", None]]},
        {"k": "d", "v": "4", "ts": CLOCK_MS - 1900}]},
    {"op": "roll"},
    {"op": "append", "leader_epoch": 5, "pid": 8, "epoch": 2, "seq": 0, "txn": True,
     "records": [{"k": "e", "v": "5", "ts": CLOCK_MS - 1000}]},
    {"op": "append", "leader_epoch": 5, "records": [{"k": "f", "v": "6", "ts": CLOCK_MS - 900}]},
]  # fmt: skip
LOG_END = 10


def make(log_dir: Path, script: list[Line] | None = None) -> Path:
    """A log directory in which a script was done, and its log closed; the directory."""
    lines = [*(SMALL if script is None else script), {"op": "close"}]
    for told in replayed(LOCAL, str(log_dir), lines):
        assert "error" not in told, told
    return log_dir


def files_in(log_dir: Path) -> list[Line]:
    """Every file, as the transcripts of the oracle tell of them."""
    (told,) = replayed(LOCAL, str(log_dir), [{"op": "files"}])
    found: list[Line] = told["result"]
    return found
