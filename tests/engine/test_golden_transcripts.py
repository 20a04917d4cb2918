"""Scripts of the engine with the transcripts of Kafka 4.3.1: the same states, answers and files.

Together they reach 111 pairs of an operation and how it ends, with crashes, damage and disks that
go away. See tests/golden/PROVENANCE.md.
"""

import gzip
from pathlib import Path
from typing import Any

import pytest

from storage.files.local import LOCAL
from tests.engine.at_once import LOOK_ALIKE, AtOnce
from tests.engine.replay.replayed import kernels_used, replayed
from tests.engine.transcripts import AS_BYTES, first_difference, lines_of

GOLDEN = Path(__file__).parents[1] / "golden" / "engine"
NAMES = sorted(path.name.partition(".")[0] for path in GOLDEN.glob("*.script.jsonl.gz"))


def lines(name: str, kind: str) -> list[dict[str, Any]]:
    return lines_of(gzip.decompress((GOLDEN / f"{name}.{kind}.jsonl.gz").read_bytes()).decode())


@pytest.mark.parametrize("with_kernels", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_replay_tells_what_kafka_tells(name: str, with_kernels: bool, tmp_path: Path) -> None:
    with kernels_used(with_kernels):
        actual = replayed(LOCAL, str(tmp_path / "log"), lines(name, "script"))
    assert first_difference(lines(name, "transcript"), actual, AS_BYTES) is None


def test_appends_by_one_call_end_as_kafkas_one_by_one(tmp_path: Path) -> None:
    """L-13, L-14, L-18. More of them: `python -m tests.engine --at-once`."""
    calls: list[int] = []
    for name in [name for name in NAMES if not name.startswith("manager")][::3]:
        script, expected = lines(name, "script"), lines(name, "transcript")
        at_once = AtOnce(script, expected)
        with kernels_used(True):
            actual = at_once.replayed(LOCAL, str(tmp_path / f"{name}-a"), str(tmp_path / name))
        assert first_difference(at_once.kept(), actual, LOOK_ALIKE) is None, name
        calls += at_once.calls
    assert sum(count > 1 for count in calls) > 5


def test_there_are_transcripts() -> None:
    assert len(NAMES) >= 14
    told = [line for name in NAMES for line in lines(name, "transcript")]
    assert len({(line["op"], line.get("error")) for line in told}) > 100


def test_a_transcript_with_another_value_is_noticed(tmp_path: Path) -> None:
    expected = lines(NAMES[0], "transcript")
    actual = replayed(LOCAL, str(tmp_path / "log"), lines(NAMES[0], "script"))
    number = next(i for i, line in enumerate(actual) if line["state"])
    actual[number]["state"]["log_end_offset"] += 1
    found = first_difference(expected, actual, AS_BYTES)
    assert found is not None
    assert f"line {actual[number]['n']}" in found
    assert "log_end_offset" in found
