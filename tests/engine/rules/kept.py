"""Kafka's answers to scripts; those of the rules are kept, one file for each part of the rules.

Of each case: the script, the same with every append as Kafka's bytes, and the transcript.
"""

import gzip
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.engine.transcripts import lines_of
from tests.oracle import kafka

GOLDEN = Path(__file__).parents[2] / "golden" / "engine" / "rules"


class Answer(NamedTuple):
    """What Kafka's engine gave for a script."""

    script: list[dict[str, Any]]
    as_bytes: list[dict[str, Any]]
    transcript: list[dict[str, Any]]


def ask_kafka(scripts: Iterable[Sequence[Mapping[str, Any]]]) -> list[Answer]:
    """Have Kafka's engine do scripts, all in one process."""
    with tempfile.TemporaryDirectory() as scratch:
        asked, told = Path(scratch) / "scripts", Path(scratch) / "kafka"
        asked.mkdir()
        lines = [[dict(line) for line in script] for script in scripts]
        for number, script in enumerate(lines):
            text = "".join(json.dumps(line) + "\n" for line in script)
            (asked / f"{number:06}.jsonl").write_text(text)
        kafka.run("engine-all", asked, told, "--hex", "true")
        return [Answer(script, *_told(told, number)) for number, script in enumerate(lines)]


def _told(told: Path, number: int) -> Iterator[list[dict[str, Any]]]:
    for kind in ("hex", "transcript"):
        yield lines_of((told / f"{number:06}.{kind}.jsonl").read_text())


@cache
def read(part: str) -> Mapping[str, Answer]:
    """The answers of a part, by the names of its cases."""
    text = gzip.decompress((GOLDEN / f"{part}.jsonl.gz").read_bytes()).decode()
    found = [json.loads(line) for line in text.splitlines()]
    return {each["name"]: Answer(*each["answer"]) for each in found}


def write(part: str, answers: Iterable[tuple[str, Answer]]) -> None:
    lines = [json.dumps({"name": name, "answer": list(each)}) + "\n" for name, each in answers]
    data = gzip.compress("".join(lines).encode(), mtime=0)
    (GOLDEN / f"{part}.jsonl.gz").write_bytes(data)
