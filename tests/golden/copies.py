"""Golden logs under other names, many of them in one log directory, for one round to take."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from compactor.settings.config import Config, kafka_choice, load_config
from storage.formats import checkpoint, clean_shutdown
from tests.golden import corpora
from tests.oracle.compare import checkpoint_entries


class GoldenLog(NamedTuple):
    """A log as Kafka wrote it, and what its directory's checkpoints and its topic say of it."""

    before: Path
    offsets: dict[str, int]  # by checkpoint
    config: dict[str, str]


@cache
def golden_log(name: str) -> GoldenLog:
    return GoldenLog(
        corpora.extracted().before / name,
        {kind: entries[name] for kind, entries in _offsets().items() if name in entries},
        _configs()[topic_of(name)],
    )


@cache
def _offsets() -> dict[str, dict[str, int]]:
    before = corpora.extracted().before
    return {kind: checkpoint_entries(before, kind) for kind in checkpoint.ALL}


@cache
def _configs() -> dict[str, dict[str, str]]:
    configs: dict[str, dict[str, str]] = json.loads(corpora.extracted().topic_configs.read_text())
    return configs


def topic_of(partition: str) -> str:
    return partition.rpartition("-")[0]


def write_copies(root: Path, logs: Mapping[str, GoldenLog]) -> None:
    """Make a log directory of these logs, by TOPIC-PARTITION."""
    root.mkdir()
    entries: dict[str, dict[tuple[str, int], int]] = {kind: {} for kind in checkpoint.ALL}
    for name, log in logs.items():
        (root / name).mkdir()
        for path in log.before.iterdir():
            copy = root / name / path.name  # no link, since one that goes is a change
            corpora.write_sparse(copy, path.read_bytes())
            shutil.copystat(path, copy)
        for kind, offset in log.offsets.items():
            entries[kind][topic_of(name), 0] = offset
    for kind, of_kind in entries.items():
        checkpoint.write(str(root / kind), of_kind)
    clean_shutdown.write(str(root))


def config_of(logs: Mapping[str, GoldenLog], path: Path) -> Config:
    """The configuration of their topics, which is written to path, and the Kafka that cleaned."""
    path.write_text(json.dumps({topic_of(name): log.config for name, log in logs.items()}))
    config = load_config(None, str(path))
    return replace(config, kafka=kafka_choice("4.3", "the golden logs"))
