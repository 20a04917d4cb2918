"""`configs`: the effective configuration of topics, and where each value comes from."""

from compactor import account
from compactor.api import places
from compactor.api.premises import premises_of
from compactor.api.rules import KAFKAS_DEFAULTS, Rules
from compactor.exit_codes import UsageError
from compactor.host.suggestions import did_you_mean
from compactor.inspect.topic_settings import TopicConfiguration, entries_of
from compactor.planning.planner import CLUSTER_METADATA
from compactor.survey import topics_in


def configs(
    log_dir: str, topic: str | None = None, rules: Rules = KAFKAS_DEFAULTS
) -> list[TopicConfiguration]:
    """Give the settings of every topic here that somebody set; of one topic, if it is named, all.

    Raise UsageError where there is no such topic, ConfigError for a setting that is not valid, and
    CorruptFileError for a metadata log that is damaged.
    """
    (path,) = places.log_dirs([log_dir], to_write=False)
    premises = premises_of(rules, [path])
    here = topics_in([path], premises.files)[0] - {CLUSTER_METADATA}
    account.current().topics |= here if topic is None else {topic}
    cluster = premises.config.cluster
    known = set(cluster.metadata.topics) if cluster and cluster.metadata else set()
    if topic is not None and topic not in here | known:
        hint = did_you_mean(topic, here | known)
        raise UsageError(f"{topic}: there is no such topic in {log_dir}{hint}")
    return [
        TopicConfiguration(
            name,
            cluster is not None and cluster.is_deleted(name),
            tuple(entries_of(premises.config, name, everything=topic is not None)),
        )
        for name in (sorted(here) if topic is None else [topic])
    ]
