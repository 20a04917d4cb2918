"""`recover --as-kafka` against Kafka's own start and stop: a sample with Kafka's answers; more by
`python -m tests.engine.recoveries`."""

from pathlib import Path

import pytest

from tests.engine.recoveries import Line, Start, difference, kept_sample

SAMPLE = {start.name: (start, kafkas) for start, kafkas in kept_sample()}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_recovery_as_kafka_leaves_kafkas_files(name: str, tmp_path: Path) -> None:
    """L-24.1, L-25.2, L-25.5 to L-25.8."""
    assert difference(*SAMPLE[name], tmp_path / "log") is None


def test_the_sample_has_damage_crashes_and_starts_that_fail() -> None:
    starts = [start for start, _ in SAMPLE.values()]
    assert sum(before_last(start)["op"] == "damage" for start in starts) >= 8
    assert sum(any(line["op"] == "crash" for line in start.before) for start in starts) >= 10
    assert sum("error" in kafkas[0] for _, kafkas in SAMPLE.values()) >= 2


def before_last(start: Start) -> Line:
    return [line for line in start.before if line["op"] != "files"][-1]


def test_files_that_are_not_kafkas_are_noticed(tmp_path: Path) -> None:
    start, kafkas = next(each for each in SAMPLE.values() if "error" not in each[1][0])
    files = kafkas[-1]["result"]
    number = next(i for i, file in enumerate(files) if file["name"].endswith(".log"))
    other = [*files[:number], {**files[number], "size": -1}, *files[number + 1 :]]
    told = difference(start, [*kafkas[:-1], {**kafkas[-1], "result": other}], tmp_path / "log")
    assert told is not None and "size" in told
