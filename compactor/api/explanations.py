"""`explain` and `configs`: what decides about a log, and where each of its settings comes from."""

import os
from dataclasses import replace

from compactor.api import path_arguments
from compactor.api.arguments import Paths, path_texts
from compactor.api.broker_starts import problems_by_broker
from compactor.api.round_context import BrokerContext, RoundContext, plan_of, read_round_context
from compactor.broker_start.reading import Depth
from compactor.command_context import current_context
from compactor.errors import UsageError
from compactor.host.suggestions import did_you_mean
from compactor.inspection import explain as explaining
from compactor.inspection.explain import Explanation
from compactor.inspection.topic_settings import TopicConfiguration, entries_of
from compactor.log_dirs.set_aside_memory import RememberedLogs
from compactor.log_dirs.survey import topics_in
from compactor.planning.planner import CLUSTER_METADATA
from compactor.settings.config import Config
from compactor.settings.rules import KAFKAS_DEFAULTS, Rules
from storage.files.files import Files


def explain(log_dirs: Paths, topic_partition: str, rules: Rules = KAFKAS_DEFAULTS) -> Explanation:
    """Say why one log is cleaned or not, and what sets each of its bounds.

    Reads metadata and the end of the log. Raise ConfigError if the log does not exist.
    """
    paths = path_arguments.log_dirs(log_dirs, to_write=False)
    context = _of_its_broker(read_round_context(rules, paths), topic_partition)
    current_context().topics |= topics_in(paths, context.files)[0] & {
        topic_partition.rpartition("-")[0]
    }
    remembered = RememberedLogs(paths, files=context.files)
    own = context.of_brokers[0].broker.log_dirs
    is_here = _has(context.of_brokers[0], topic_partition, context.files)
    only = topic_partition if is_here else None  # else others are named that are meant, perhaps
    plan = plan_of(context, remembered.problems, with_files=False, only=only)
    problems = problems_by_broker(own, context.files, Depth.NAMES)
    found = explaining.explain(plan, topic_partition, context.config, problems)
    return replace(found, warnings=(*context.warnings, *remembered.warnings))


def _of_its_broker(context: RoundContext, topic_partition: str) -> RoundContext:
    """Return the context of the broker that has the log, and of its topic alone.

    Raise UsageError where none of several brokers has it, or more than one.
    """
    config = explaining.only_topic_of(topic_partition, context.config)
    having = list(context.of_brokers)
    if len(having) > 1:
        having = [each for each in having if _has(each, topic_partition, context.files)]
        if len(having) != 1:
            where = " and ".join(each.broker.name for each in having or context.of_brokers)
            problem = "is in the log directories of" if having else "there is no such log of"
            raise UsageError(
                f"{problem} {where}; give those of one broker", "topic_partition", topic_partition
            )
        config = explaining.only_topic_of(topic_partition, having[0].config)
    own = having[0]._replace(config=config)
    return context._replace(config=config, of_brokers=(own,))


def _has(of_broker: BrokerContext, topic_partition: str, files: Files) -> bool:
    return any(
        files.is_directory(os.path.join(log_dir, topic_partition))
        for log_dir in of_broker.broker.log_dirs
    )


def configs(
    log_dirs: Paths, topic: str | None = None, rules: Rules = KAFKAS_DEFAULTS
) -> list[TopicConfiguration]:
    """Return the settings of each topic that somebody set; of one topic, if it is named, all.

    log_dirs: of one broker, or of several, each of which has settings of its own.
    Raise UsageError for an unknown topic, ConfigError for a setting that is not valid, and
    CorruptFileError for a metadata log that is damaged.
    """
    given = path_texts(log_dirs)
    paths = path_arguments.log_dirs(given, to_write=False)
    context = read_round_context(rules, paths)
    of_brokers = [
        (each, topics_in(each.broker.log_dirs, context.files)[0] - {CLUSTER_METADATA})
        for each in context.of_brokers
    ]
    here = {name for _, names in of_brokers for name in names}
    current_context().topics |= here if topic is None else {topic}
    known = here.union(*(_known(each.config) for each, _ in of_brokers))
    if topic is not None and topic not in known:
        hint = did_you_mean(topic, known)
        raise UsageError(f"there is no such topic in {' or '.join(given)}{hint}", value=topic)
    found = []
    for each, names in of_brokers:
        wanted = names if topic is None else {topic} & (names | _known(each.config))
        broker = each.broker.name if len(of_brokers) > 1 else None
        whole = topic is not None
        found += [_of_topic(each.config, name, whole, broker) for name in sorted(wanted)]
    return found


def _known(config: Config) -> set[str]:
    """Return the topics in the cluster's metadata log."""
    cluster = config.cluster
    return set(cluster.metadata.topics) if cluster and cluster.metadata else set()


def _of_topic(
    config: Config, name: str, everything: bool, broker: str | None
) -> TopicConfiguration:
    is_deleted = config.cluster is not None and config.cluster.is_deleted(name)
    entries = tuple(entries_of(config, name, everything))
    return TopicConfiguration(name, is_deleted, entries, broker)
