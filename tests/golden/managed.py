"""Golden logs that a log manager may clean, and what Kafka's cleaner left of them."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from compactor import LogManager
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from tests.conformance.fleet import Kafkas
from tests.golden import corpora
from tests.golden.copies import golden_log, topic_of

NOW_MS = corpora.now_ms()
KINDS = (".log", ".index", ".timeindex", ".txnindex")
_PREFIXES = ("random-", "txn-", "everything-", "legacy-")


@cache
def names_for_a_broker() -> list[str]:
    """Cleaned by Kafka, in log directories as a broker has them, without retention."""
    return [name for name in corpora.partitions() if _is_for_a_broker(name)]


def _is_for_a_broker(name: str) -> bool:
    policy = golden_log(name).config.get("cleanup.policy", "compact")
    return (
        name.startswith(_PREFIXES)
        and corpora.outcomes()[name] is Kafkas.CLEANED
        and policy == "compact"
    )


def settings_of(names: list[str]) -> dict[str, dict[str, str]]:
    """By topic."""
    return {
        topic_of(name): {"cleanup.policy": "compact"} | golden_log(name).config for name in names
    }


def replicate(manager: LogManager, names: list[str]) -> None:
    """Set high watermarks as a broker does, which has them from its checkpoint."""
    for name in names:
        offset = golden_log(name).offsets[checkpoint.REPLICATION]
        manager.logs[topic_of(name), 0].update_high_watermark(offset)


def active_bases(manager: LogManager) -> dict[TopicPartition, int]:
    """Of the segments that a cleaning leaves alone."""
    return {partition: log.segments[-1].base_offset for partition, log in manager.logs.items()}


def require_kafkas_bytes(
    manager: LogManager, log_dir: Path, actives: Mapping[TopicPartition, int]
) -> None:
    """C-15.1, of logs that are open: the segments below the active ones, as these were when the
    cleaning began, and the cleaner's checkpoint."""
    fleet = corpora.extracted()
    checkpoints = checkpoint.read(str(log_dir / checkpoint.CLEANER_OFFSET))
    expected = json.loads((fleet.root / "fleet.json").read_text())["results"]
    for partition, log in manager.logs.items():
        name = f"{partition[0]}-{partition[1]}"
        active = actives[partition]
        found = _closed_segments(Path(log.path), active)
        assert found == _closed_segments(fleet.after / name, active), name
        assert checkpoints[partition] == expected[name]["end_offset"]


def _closed_segments(path: Path, active_base: int) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes()
        for file in path.iterdir()
        if file.suffix in KINDS and int(file.stem) < active_base
    }
