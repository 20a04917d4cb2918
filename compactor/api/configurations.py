"""`configs`: the effective configuration of topics, and where each value comes from."""

from compactor.api import path_arguments
from compactor.api.arguments import Paths, path_texts
from compactor.api.round_context import premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.command_context import current_context
from compactor.host.suggestions import did_you_mean
from compactor.inspection.topic_settings import TopicConfiguration, entries_of
from compactor.log_dirs.survey import topics_in
from compactor.outcome.exit_codes import UsageError
from compactor.planning.planner import CLUSTER_METADATA
from compactor.settings.config import Config


def configs(
    log_dirs: Paths, topic: str | None = None, rules: Rules = KAFKAS_DEFAULTS
) -> list[TopicConfiguration]:
    """Give the settings of every topic here that somebody set; of one topic, if it is named, all.

    log_dirs: of one broker, or of several, each of which has settings of its own.
    Raise UsageError where there is no such topic, ConfigError for a setting that is not valid, and
    CorruptFileError for a metadata log that is damaged.
    """
    given = path_texts(log_dirs)
    paths = path_arguments.log_dirs(given, to_write=False)
    premises = premises_of(rules, paths)
    of_brokers = [
        (each, topics_in(each.broker.log_dirs, premises.files)[0] - {CLUSTER_METADATA})
        for each in premises.of_brokers
    ]
    here = {name for _, names in of_brokers for name in names}
    current_context().topics |= here if topic is None else {topic}
    known = here.union(*(_known(each.config) for each, _ in of_brokers))
    if topic is not None and topic not in known:
        hint = did_you_mean(topic, known)
        raise UsageError(f"{topic}: there is no such topic in {' or '.join(given)}{hint}")
    found = []
    for each, names in of_brokers:
        wanted = names if topic is None else {topic} & (names | _known(each.config))
        broker = each.broker.name if len(of_brokers) > 1 else None
        whole = topic is not None
        found += [_of_topic(each.config, name, whole, broker) for name in sorted(wanted)]
    return found


def _known(config: Config) -> set[str]:
    """The topics that the cluster's metadata log has."""
    cluster = config.cluster
    return set(cluster.metadata.topics) if cluster and cluster.metadata else set()


def _of_topic(
    config: Config, name: str, everything: bool, broker: str | None
) -> TopicConfiguration:
    is_deleted = config.cluster is not None and config.cluster.is_deleted(name)
    entries = tuple(entries_of(config, name, everything))
    return TopicConfiguration(name, is_deleted, entries, broker)
