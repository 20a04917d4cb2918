"""Words of the command line by which an operator would lose data: refused before anything is done.

Each message says what would happen, and what was probably meant.
"""

from compactor.config import Config
from compactor.exit_codes import UsageError
from compactor.topic_config import COMPACT


def require_named_topics(config: Config) -> None:
    """Raise UsageError where --set makes topics compacted, whichever there are."""
    policy = config.overrides.get("cleanup.policy")
    if isinstance(policy, tuple) and COMPACT in policy and config.include is None:
        raise UsageError(
            f"--set cleanup.policy={','.join(policy)}: would compact every topic, and one of "
            "policy delete would lose most of its records; say which with --include REGEX, or "
            "give each topic its own policy with --topic-configs FILE"
        )
