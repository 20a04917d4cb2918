"""Kafka's answers to the scripts of the rules, one file for each part of the rules.

Of each case: the script, the same with every append as Kafka's bytes, and the transcript.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

GOLDEN = Path(__file__).parents[2] / "golden" / "engine" / "rules"


class Answer(NamedTuple):
    """What Kafka's engine gave for a script."""

    script: list[dict[str, Any]]
    as_bytes: list[dict[str, Any]]
    transcript: list[dict[str, Any]]


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
