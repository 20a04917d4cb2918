"""The guard against compacting what is no compacted topic: pure.

Brokers take no record without a key into a compacted topic, so the few that a cleaner finds there
are from before its policy was changed. Where most of what would go has no key, the policy is
probably a mistake, and the topic holds events that nobody meant to lose.
"""

from collections.abc import Sequence

from cleaner_jobs.messages import Part, Verdict


def why_keys_are_missed(
    parts: Sequence[Part], verdicts: Sequence[Verdict], markers_dropped: int
) -> str | None:
    """Say why a log is not to be cleaned: it is resolved, and nothing of it is rewritten yet."""
    null_keys = sum(part.null_keys for part in parts)
    gone = null_keys + markers_dropped
    gone += sum(part.superseded + part.aborted for part in parts)
    gone += sum(verdict.superseded + verdict.expired for verdict in verdicts)
    if 2 * null_keys <= gone:
        return None
    return (
        f"records without a key: {null_keys:,} of the {gone:,} that would go. A broker accepts no "
        "such record in a compacted topic, so this may not be one. Nothing was changed; "
        "--drop-null-keys cleans it anyway"
    )
