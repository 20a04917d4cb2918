"""Cleanings that end otherwise than Kafka's for a reason of docs/differences.md.

What stands in a log after one of them is another thing than what Kafka leaves, so a script can be
compared up to there.
"""

from collections.abc import Sequence
from typing import Any

# by the error of Kafka's cleaner; "": it cleaned the log, or passed it over
_SET_ASIDE = "CorruptRecordException"  # of ours: the log's data is wrong, and it is left as it was
_STOPS = ("IllegalArgumentException", "KafkaException")  # Kafka's, where ours can go on


def first_other_cleaning(
    expected: Sequence[dict[str, Any]], actual: Sequence[dict[str, Any]]
) -> tuple[int, str] | None:
    """At which line it happens, from 0, and what kind it is; None where none does."""
    for number, (kafkas, ours) in enumerate(zip(expected, actual, strict=False)):
        kind = _kind(kafkas, ours) if kafkas["op"] == "clean" else None
        if kind is not None:
            return number, kind
    return None


def _kind(kafkas: dict[str, Any], ours: dict[str, Any]) -> str | None:
    error = kafkas.get("error", "")
    if ours.get("error") == _SET_ASIDE != error:
        return "damaged: " + (f"Kafka's cleaner stops, {error}" if error else "Kafka goes on")
    if error in _STOPS and ours.get("result", {}).get("cleaned"):
        return f"Kafka's cleaner stops, {error}: ours goes on"
    return None
