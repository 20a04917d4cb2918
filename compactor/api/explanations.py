"""`explain`: every bound of what may be cleaned of one log, and why it is cleaned or not."""

from collections.abc import Sequence

from compactor.api import places
from compactor.api.premises import premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.inspect import explain as explaining
from compactor.inspect.explain import Explanation
from compactor.remembered_logs import RememberedLogs


def explain(
    log_dirs: Sequence[str], topic_partition: str, rules: Rules = KAFKAS_DEFAULTS
) -> Explanation:
    """Say why one log is cleaned or not, and what sets each of its bounds.

    Reads metadata and the end of the log. Raise ConfigError if there is no such log.
    """
    paths = places.log_dirs(log_dirs, to_write=False)
    premises = premises_of(rules)
    remembered = RememberedLogs(paths, files=premises.files)
    found = explaining.explain(
        paths, topic_partition, premises.config, premises.as_of_ms, remembered.problems
    )
    return found._replace(warnings=tuple(remembered.warnings))
