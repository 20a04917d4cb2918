"""`explain`: every bound of what may be cleaned of one log, and why it is cleaned or not."""

from collections.abc import Sequence

from compactor import account
from compactor.api import places
from compactor.api.premises import plan_of, premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.inspect import explain as explaining
from compactor.inspect.explain import Explanation
from compactor.remembered_logs import RememberedLogs
from compactor.survey import topics_in


def explain(
    log_dirs: Sequence[str], topic_partition: str, rules: Rules = KAFKAS_DEFAULTS
) -> Explanation:
    """Say why one log is cleaned or not, and what sets each of its bounds.

    Reads metadata and the end of the log. Raise ConfigError if there is no such log.
    """
    paths = places.log_dirs(log_dirs, to_write=False)
    premises = premises_of(rules, paths)
    config = explaining.only_topic_of(topic_partition, premises.config)
    premises = premises._replace(config=config)
    account.current().topics |= topics_in(paths, premises.files)[0] & {
        topic_partition.rpartition("-")[0]
    }
    remembered = RememberedLogs(paths, files=premises.files)
    plan = plan_of(premises, paths, remembered.problems)
    found = explaining.explain(plan, topic_partition, premises.config)
    return found._replace(warnings=tuple(remembered.warnings))
