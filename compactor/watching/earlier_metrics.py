"""What a file of metrics still says when it is replaced: times of earlier commands. Pure."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

SUCCESS = "compactor_command_success_timestamp_seconds"
CLEANED = "compactor_run_log_cleaned_timestamp_seconds"
LOG_LABELS = ("log_dir", "topic", "partition")
_BEGINS = tuple(f"{name}{{".encode() for name in (SUCCESS, CLEANED))


class Earlier(NamedTuple):
    """Seconds since the epoch."""

    success_s: Mapping[str, float]  # by command
    cleaned_s: Mapping[tuple[str, ...], float]  # by the values of LOG_LABELS


def earlier(previous: bytes) -> Earlier:
    """Read the file that is replaced; what cannot be read of it says nothing.

    Which file a series names does not matter: it may have been moved, or name none.
    """
    lines = [line for line in previous.splitlines() if line.startswith(_BEGINS)]
    try:
        families = list(text_string_to_metric_families(b"\n".join(lines).decode()))
    except ValueError:  # UnicodeDecodeError is one
        families = []
    success_s: dict[str, float] = {}
    cleaned_s: dict[tuple[str, ...], float] = {}
    for sample in (sample for family in families for sample in family.samples):
        if not math.isfinite(sample.value):
            continue
        labels = {name: text for name, text in sample.labels.items() if name != "file"}
        if sample.name == SUCCESS and labels.keys() == {"command"}:
            success_s[labels["command"]] = sample.value
        elif sample.name == CLEANED and labels.keys() == set(LOG_LABELS):
            cleaned_s[tuple(labels[label] for label in LOG_LABELS)] = sample.value
    return Earlier(MappingProxyType(success_s), MappingProxyType(cleaned_s))
