"""What a change of one log does, before and after: lines for a person, and a document."""

from compactor.offline_log.truncate import Outcome
from compactor.views.json_values import to_json
from compactor.views.report_json import JsonObject

_WORDS = {
    "log_start": "log start offset",
    "log_end": "log end offset",
    "high_watermark": "high watermark",
    "last_stable": "last stable offset",
    "segments": "segments",
    "size_bytes": "bytes",
}


def change_lines(outcome: Outcome) -> list[str]:
    """What is done, then each number that moves."""
    lines = [f"  {outcome.does}"]
    for name, words in _WORDS.items():
        before, after = getattr(outcome.before, name), getattr(outcome.after, name)
        if before != after:
            lines.append(f"  {words}: {before:,} becomes {after:,}")
    return lines


def change_document(name: str, outcome: Outcome, is_dry_run: bool) -> JsonObject:
    """name: of the log, as orders-0, which is one that there is."""
    topic, _, partition = name.rpartition("-")
    return {
        "topic": topic,
        "partition": int(partition),
        "dry_run": is_dry_run,
        "changed": outcome.is_changed and not is_dry_run,
        "does": outcome.does,
        "before": to_json(outcome.before),
        "after": to_json(outcome.after),
        "appended": to_json(outcome.appended),
    }
