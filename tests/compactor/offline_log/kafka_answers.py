"""What Kafka's own engine leaves where it does to a log what a command does: files, by the oracle.

`python -m tests.compactor.offline_log.kafka_answers` asks Kafka again and writes the golden file.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.compactor.offline_log.made_logs import SMALL, Line

GOLDEN = Path(__file__).parents[2] / "golden" / "stopped_log.json"
ORACLE = Path(__file__).parents[2] / "oracle" / "oracle"

_RETENTION = {"op": "config", "retention.ms": "-1", "file.delete.delay.ms": "0"}
_TOMBSTONE = {
    "op": "append", "leader_epoch": 5,
    "records": [{"k": "a", "ts": 1_700_000_000_000, "h": [["why", "asked"]]}],
}  # fmt: skip
OPERATIONS: dict[str, list[Line]] = {
    "roll": [{"op": "roll"}],
    "delete-records 2": [{"op": "delete_records", "offset": 2}, _RETENTION, {"op": "retention"}],
    "delete-records 5": [{"op": "delete_records", "offset": 5}, _RETENTION, {"op": "retention"}],
    "delete-records 10": [{"op": "delete_records", "offset": 10}, _RETENTION, {"op": "retention"}],
    "truncate 9": [{"op": "truncate_to", "offset": 9}],
    "truncate 8": [{"op": "truncate_to", "offset": 8}],
    "truncate 4": [{"op": "truncate_to", "offset": 4}],
    "truncate 0": [{"op": "truncate_to", "offset": 0}],
    "append": [_TOMBSTONE],
    "append zstd": [_TOMBSTONE | {"codec": "zstd"}],
    "abort": [{"op": "end_txn", "pid": 8, "epoch": 2, "commit": False, "leader_epoch": 5}],
}


def answers() -> dict[str, Any]:
    """The files after each operation, as Kafka leaves them."""
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


def script_of(operation: list[Line]) -> list[Line]:
    """The log is made and closed, opened again, changed, closed."""
    return [*SMALL, {"op": "close"}, {"op": "open"}, *operation, {"op": "close"}, {"op": "files"}]


def _ask() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, operation in OPERATIONS.items():
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory) / "script.jsonl"
            script.write_text("".join(json.dumps(line) + "\n" for line in script_of(operation)))
            told = subprocess.run(
                [ORACLE, "engine", script, Path(directory) / "log"],
                check=True,
                capture_output=True,
                text=True,
            )
            lines = [json.loads(line) for line in told.stdout.splitlines()]
        errors = [line for line in lines if "error" in line]
        assert not errors, errors
        found[name] = lines[-1]["result"]
    return found


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(_ask(), indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{GOLDEN}: {len(OPERATIONS)} answers\n")
