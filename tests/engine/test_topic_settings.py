"""Each setting of a topic changes what a log does, or the page says that it has no effect here."""

import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from storage.files.local import LOCAL
from storage.formats.kafka_settings import KNOWN_ELSEWHERE, SETTINGS
from storage.log.log_config import LogConfig
from tests.engine.replay.replayed import replayed
from tests.engine.replay.script_clock import FIRST_CLOCK_MS

PAGE = Path(__file__).parents[2] / "docs" / "one-log.md"
NONE = "no effect here"
Script = Sequence[dict[str, Any]]
DAY_MS = 86_400_000


def _append(*keys: str, value: str | None = "v" * 200, ts: int = 0) -> dict[str, Any]:
    return {
        "op": "append",
        "records": [{"k": key, "v": value, "ts": FIRST_CLOCK_MS + ts} for key in keys],
    }


ROLL: dict[str, Any] = {"op": "roll"}
TEXT = "".join(f"{number * number} of {number % 7} " for number in range(3000))
LONG = _append("a", value=TEXT)
CLEAN: dict[str, Any] = {"op": "clean"}
COMPACT = {"cleanup.policy": "compact"}
TWICE = [_append("a"), ROLL, _append("a"), ROLL, _append("a")]


def _later(ms: int) -> dict[str, Any]:
    return {"op": "clock", "advance": ms}


# by setting: a value other than the default, other settings, what is done
CASES: dict[str, tuple[str, dict[str, str], Script]] = {
    "cleanup.policy": ("compact", {}, [*TWICE, CLEAN]),
    "compression.type": ("gzip", {}, [LONG]),
    "compression.gzip.level": ("1", {"compression.type": "gzip"}, [LONG]),
    "compression.lz4.level": ("12", {"compression.type": "lz4"}, [LONG]),
    "compression.zstd.level": ("19", {"compression.type": "zstd"}, [LONG]),
    "delete.retention.ms": (
        "0",
        COMPACT,
        [
            _append("a", value=None),
            ROLL,
            _append("b"),
            ROLL,
            CLEAN,
            _append("c"),
            ROLL,
            _append("d"),
            _later(1000),
            CLEAN,
        ],
    ),
    "file.delete.delay.ms": (
        "1",
        {},
        [*TWICE, {"op": "delete_records", "offset": 1}, {"op": "retention"}, _later(1000)],
    ),
    "flush.messages": ("1", {}, [_append("a")]),
    "flush.ms": ("1", {}, [_append("a"), _later(1000), {"op": "task", "name": "flush"}]),
    "index.interval.bytes": ("0", {}, [_append("a"), _append("b")]),
    "max.compaction.lag.ms": ("10", COMPACT, [_append("a"), _later(10_000), _append("b", ts=9000)]),
    "max.message.bytes": ("100", {}, [_append("a")]),
    "message.timestamp.after.max.ms": ("1", {}, [_append("a", ts=DAY_MS // 48)]),
    "message.timestamp.before.max.ms": ("1", {}, [_later(DAY_MS), _append("a")]),
    "message.timestamp.type": ("LogAppendTime", {}, [_later(5), _append("a")]),
    "min.cleanable.dirty.ratio": (
        "0",
        COMPACT,
        [*TWICE, _append(*"bcdefghi"), ROLL, CLEAN, _append("a"), ROLL, CLEAN],
    ),
    "min.compaction.lag.ms": (str(DAY_MS), COMPACT, [*TWICE, CLEAN]),
    "preallocate": ("true", {"segment.bytes": "1048576"}, [_append("a")]),
    "retention.bytes": ("1", {}, [*TWICE, {"op": "retention"}]),
    "retention.ms": ("1", {}, [*TWICE, _later(1000), {"op": "retention"}]),
    "segment.bytes": ("300", {}, [_append("a"), _append("b")]),
    "segment.index.bytes": ("8", {"index.interval.bytes": "0"}, [_append("a")] * 4),
    "segment.jitter.ms": (
        "1000000",
        {"segment.ms": "1000000"},
        [_append("a"), _later(999_999), _append("b", ts=999_999)],
    ),
    "segment.ms": ("10", {}, [_append("a"), _later(1000), _append("b", ts=1000)]),
}


def _rows() -> dict[str, tuple[str, str]]:
    """By setting: what it is to a round, and to a log that is appended to."""
    section = PAGE.read_text("utf-8").split("## Settings of a topic")[1].split("\n## ")[0]
    found = re.findall(r"^\| `([a-z0-9.]+)` \| ([^|]*) \| ([^|]*) \|$", section, re.M)
    without_effect = re.search(r"^These are known, .*?\.\n$", section, re.M | re.S)
    assert without_effect is not None
    found += [(name, NONE, NONE) for name in re.findall(r"`([a-z0-9.]+)`", without_effect[0])]
    assert len(found) == len({name for name, _, _ in found})
    return {name: (of_round.strip(), of_log.strip()) for name, of_round, of_log in found}


def test_the_page_has_every_setting() -> None:
    of_engine = {field.name.replace("_", ".") for field in fields(LogConfig)}
    assert _rows().keys() == SETTINGS.keys() | KNOWN_ELSEWHERE | of_engine


def test_every_setting_that_has_an_effect_on_a_log_is_tried() -> None:
    with_effect = {name for name, (_, of_log) in _rows().items() if of_log != NONE}
    of_others = {
        "internal.segment.bytes",
        "max.decompressed.message.bytes",
    }  # Kafka 4.3 has no such
    assert with_effect - of_others == CASES.keys()


def _begun(settings: dict[str, str]) -> Script:
    """A log manager, for what only that does, with one log whose records are all committed."""
    return [
        {"op": "manager"},
        {"op": "settings", "follow_high_watermark": True},
        {"op": "config", "topic": "t", **settings},
        {"op": "startup"},
        {"op": "create", "log": "t-0"},
    ]


def _done(folder: Path, settings: dict[str, str], script: Script) -> tuple[Any, dict[str, bytes]]:
    told = replayed(LOCAL, str(folder), [*_begun(settings), *script])
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return [line for line in told if line["op"] != "config"], files


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_setting_changes_what_becomes_of_a_log(name: str, tmp_path: Path) -> None:
    value, others, script = CASES[name]
    as_it_is = _done(tmp_path / "a", others, script)
    assert as_it_is == _done(tmp_path / "b", others, script), "the script is not the same twice"
    assert as_it_is != _done(tmp_path / "c", {**others, name: value}, script)
