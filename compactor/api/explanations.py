"""`explain`: every bound of what may be cleaned of one log, and why it is cleaned or not."""

import os

from compactor.api import path_arguments
from compactor.api.arguments import Paths
from compactor.api.broker_starts import problems_by_broker
from compactor.api.round_context import OfBroker, Premises, plan_of, premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.broker_start.reading import Depth
from compactor.command_context import current_context
from compactor.inspection import explain as explaining
from compactor.inspection.explain import Explanation
from compactor.log_dirs.remembered_logs import RememberedLogs
from compactor.log_dirs.survey import topics_in
from compactor.outcome.exit_codes import UsageError
from storage.files.files import Files


def explain(log_dirs: Paths, topic_partition: str, rules: Rules = KAFKAS_DEFAULTS) -> Explanation:
    """Say why one log is cleaned or not, and what sets each of its bounds.

    Reads metadata and the end of the log. Raise ConfigError if there is no such log.
    """
    paths = path_arguments.log_dirs(log_dirs, to_write=False)
    premises = _of_its_broker(premises_of(rules, paths), topic_partition)
    current_context().topics |= topics_in(paths, premises.files)[0] & {
        topic_partition.rpartition("-")[0]
    }
    remembered = RememberedLogs(paths, files=premises.files)
    plan = plan_of(premises, remembered.problems, with_files=False)
    own = premises.of_brokers[0].broker.log_dirs
    problems = problems_by_broker(own, premises.files, Depth.NAMES)
    found = explaining.explain(plan, topic_partition, premises.config, problems)
    return found._replace(warnings=(*premises.warnings, *remembered.warnings))


def _of_its_broker(premises: Premises, topic_partition: str) -> Premises:
    """Those of the broker that has the log, and of its topic alone.

    Raise UsageError where none of several brokers has it, or more than one.
    """
    config = explaining.only_topic_of(topic_partition, premises.config)
    having = list(premises.of_brokers)
    if len(having) > 1:
        having = [each for each in having if _has(each, topic_partition, premises.files)]
        if len(having) != 1:
            where = " and ".join(each.broker.name for each in having or premises.of_brokers)
            problem = "is in the log directories of" if having else "there is no such log of"
            raise UsageError(
                f"TOPIC-PARTITION {topic_partition}: {problem} {where}; give those of one broker"
            )
        config = explaining.only_topic_of(topic_partition, having[0].config)
    own = having[0]._replace(config=config)
    return premises._replace(config=config, of_brokers=(own,))


def _has(of_broker: OfBroker, topic_partition: str, files: Files) -> bool:
    return any(
        files.is_directory(os.path.join(log_dir, topic_partition))
        for log_dir in of_broker.broker.log_dirs
    )
