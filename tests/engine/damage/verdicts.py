"""How a damage ends here, held against how it ends in Kafka's engine."""

import tempfile
from enum import Enum
from typing import Any, NamedTuple

from storage.files.local import LOCAL
from tests.engine.replay.replayed import replayed
from tests.engine.rules.kept import Answer
from tests.engine.transcripts import AS_BYTES, first_difference


class Kind(Enum):
    """What the first difference of two transcripts is."""

    SAME = "Kafka's answers and files"
    TOLD = "an error of the log where Kafka has another, or goes on"
    SILENT = "other answers or files, and no error"
    UNTYPED = "an error that is none of the log"


WRONG = (Kind.SILENT, Kind.UNTYPED)


class Verdict(NamedTuple):
    kind: Kind
    difference: str


def verdict(answer: Answer) -> Verdict:
    """Do a script by our engine, in files of its own."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            actual = replayed(LOCAL, directory, answer.as_bytes)
        except Exception as error:  # what is no answer of the log is a finding
            return Verdict(Kind.UNTYPED, repr(error))
    return compared(answer.transcript, actual)


def compared(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> Verdict:
    """By the first line that differs: from there on the two logs are not the same."""
    for number, (theirs, ours) in enumerate(zip(expected, actual, strict=True)):
        found = first_difference([theirs], [ours], AS_BYTES)
        if found is not None:
            described = first_difference(expected[: number + 1], actual[: number + 1], AS_BYTES)
            return Verdict(Kind.TOLD if _tells(ours) else Kind.SILENT, described or found)
    return Verdict(Kind.SAME, "")


def _tells(line: dict[str, Any]) -> bool:
    """An error of the operation, or of whoever goes through the bytes that a read has given."""
    result = line.get("result")
    return "error" in line or (isinstance(result, dict) and bool(result.get("batches_error")))
