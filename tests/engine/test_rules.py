"""Every case of tests/engine/rules: what is said of it is seen in Kafka's transcript, and ours is
the same. The rules are those of docs/spec/engine.md.

Beside the rules that cases are named after they hold those that every log shows: which files it has
(L-1.1), how long an index is and what is left of it (L-4.2, L-4.5, L-6.3), when it is made (L-8.3),
where an offset is (L-9.1), how old a segment is (L-10.2), what closes, renames and deletes it
(L-11.6 to L-11.8). Each of these, broken once, makes a case fail."""

from pathlib import Path
from typing import Any

import pytest

from storage.files.local import LOCAL
from tests.engine.replay.replayed import replayed
from tests.engine.rules import kept
from tests.engine.rules.case import Case, Expectation, value_at
from tests.engine.rules.parts import PARTS
from tests.engine.transcripts import AS_BYTES, first_difference

CASES = [pytest.param(part, case, id=case.name) for part in PARTS for case in PARTS[part]]


def told(transcript: list[dict[str, Any]], expected: Expectation) -> object:
    line = transcript[expected.line]
    if expected.path == "files":
        names = [file["name"] for file in line["result"] if "/" in file["name"]]
        return [name.split("/", 1)[1] for name in names]
    if expected.path.startswith("logs/"):  # of a log manager
        _, name, path = expected.path.split("/")
        return value_at(line["logs"][name], path)
    field, _, name = expected.path.partition(" ")
    if name:  # of one file
        return next((file[field] for file in line["result"] if file["name"] == name), None)
    return value_at(line, expected.path)


@pytest.mark.parametrize(("part", "case"), CASES)
def test_kafka_says_so_and_so_do_we(part: str, case: Case, tmp_path: Path) -> None:
    answer = kept.read(part)[case.name]
    assert answer.script == case.script, "Kafka was asked another script"
    seen = [(each, told(answer.transcript, each)) for each in case.expectations()]
    assert [(each, value) for each, value in seen if value != each.value] == []
    actual = replayed(LOCAL, str(tmp_path / "log"), answer.as_bytes)
    assert first_difference(answer.transcript, actual, AS_BYTES) is None


def test_every_case_says_something_and_has_a_name_of_its_own() -> None:
    names = [case.name for cases in PARTS.values() for case in cases]
    assert len(names) == len(set(names))
    silent = [case for cases in PARTS.values() for case in cases if not list(case.expectations())]
    assert [case.name for case in silent] == []


def test_every_answer_is_one_of_a_case() -> None:
    for part, cases in PARTS.items():
        assert list(kept.read(part)) == [case.name for case in cases]
