"""Words of the command line by which an operator would lose data: refused before anything is done.

Each message says what would happen, and what was probably meant.
"""

from compactor.command_line.arguments import MAX_TIME_MS
from compactor.config import CLOCKS_DIFFER_MS, Config
from compactor.exit_codes import UsageError
from compactor.host.printable import iso_time
from compactor.topic_config import COMPACT

_END_OF_1970_MS = 31_536_000_000


def require_named_topics(config: Config) -> None:
    """Raise UsageError where --set makes topics compacted, whichever there are."""
    policy = config.overrides.get("cleanup.policy")
    if isinstance(policy, tuple) and COMPACT in policy and config.include is None:
        raise UsageError(
            f"--set cleanup.policy={','.join(policy)}: would compact every topic, and one of "
            "policy delete would lose most of its records; say which with --include REGEX, or "
            "give each topic its own policy with --topic-configs FILE"
        )


def why_as_of_is_doubtful(text: str, as_of_ms: int, now_ms: int) -> str | None:
    """Say what is wrong with the time that --as-of gives; None if nothing is.

    Tombstones and markers would be dated by it, and go at once, or before their time.
    """
    found = f"--as-of {text}: is {iso_time(as_of_ms)}"
    if as_of_ms < _END_OF_1970_MS:
        return f"{found}; {_meant_in_1970(text)}; --any-clock takes it as it is"
    ahead_ms = as_of_ms - now_ms
    if ahead_ms <= CLOCKS_DIFFER_MS:
        return None
    zone = "; a time without a zone is taken for UTC" if _has_no_zone(text) else ""
    return (
        f"{found}, {ahead_ms // 1000} s ahead of this machine's clock, {iso_time(now_ms)}{zone}; "
        "tombstones would go before their time. Without --as-of it is the present time; "
        "--any-clock takes it as it is"
    )


def _meant_in_1970(text: str) -> str:
    in_seconds = int(text) * 1000 if text.strip().isdigit() else MAX_TIME_MS + 1
    if _END_OF_1970_MS <= in_seconds <= MAX_TIME_MS:
        return f"are those seconds? In milliseconds {iso_time(in_seconds)} is {in_seconds}"
    return "without --as-of it is the present time"


def _has_no_zone(text: str) -> bool:
    _, _, time = text.strip().upper().partition("T")
    return bool(time) and not time.endswith("Z") and "+" not in time and "-" not in time
