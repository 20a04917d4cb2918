"""The configuration and the clock of a command, read and checked once.

Guards against lost data hold for the command line and for callers from Python: a policy for every
topic, a doubtful clock, filters that match nothing, logs of which nobody says how far they are
replicated. The clock is read once, see `compactor.host.clock`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from compactor.api.as_of import as_of_ms, doubt_of_clock
from compactor.command_context import current_context
from compactor.errors import UsageError
from compactor.host.clock import now_ms
from compactor.log_dirs.brokers import BrokerLogDirs, by_broker
from compactor.log_dirs.survey import require_high_watermarks, topics_in
from compactor.planning.candidate import RoundClock
from compactor.planning.evaluation import EvaluationRequest
from compactor.planning.outcomes import Problems
from compactor.planning.round_plan import RoundPlan, merge_plans, plan_round
from compactor.planning.unknown_topics import (
    disagreement_warnings,
    require_include,
    unknown_topic_warnings,
)
from compactor.settings.cluster_settings import (
    ClusterSettings,
    MetadataSource,
    identity_findings,
    read_cluster_settings,
    require_all_log_dirs,
)
from compactor.settings.config import Config, kafka_choice, load_configs, with_filters
from compactor.settings.rules import Rules, option_names
from compactor.settings.sources import SourceFinding
from storage.files.files import Disk, Files
from storage.files.local import LOCAL
from storage.formats.kafka_settings import COMPACT
from storage.kafka_versions import KafkaUse


class BrokerContext(NamedTuple):
    """What holds for the log directories of one broker."""

    broker: BrokerLogDirs
    config: Config


class RoundContext(NamedTuple):
    """Configuration and clock. Read once: a file of settings may be a pipe."""

    config: Config  # of the first broker; what options say is the same for all
    started_at_ms: int  # when it was made
    as_of_ms: int  # the time taken as now, from the first step to the last
    is_as_of_given: bool
    warnings: tuple[str, ...] = ()
    conditions: Mapping[str, str] = {}  # of the warnings about sources: what stays while they last
    of_brokers: tuple[BrokerContext, ...] = ()  # one, or several where several brokers' were given
    files: Files = LOCAL  # by which log directories are read
    disk: Disk = LOCAL  # by which they are changed, and work is done
    is_metadata_ignored: bool = False

    def config_of(self, log_dir: str) -> Config:
        """Return the configuration of the logs of a log directory."""
        of_brokers = (each for each in self.of_brokers if log_dir in each.broker.log_dirs)
        return next((each.config for each in of_brokers), self.config)

    def in_copies(self, copies: Mapping[str, str]) -> "RoundContext":
        """Return the same context for copies of the log directories, by the path of each."""
        return self._replace(
            of_brokers=tuple(
                each._replace(
                    broker=each.broker._replace(
                        log_dirs=tuple(copies[path] for path in each.broker.log_dirs)
                    )
                )
                for each in self.of_brokers
            )
        )


def read_round_context(rules: Rules, log_dirs: Sequence[str]) -> RoundContext:
    """Read configuration and clock, and what each broker's files in its log directories say.

    Raise ConfigError, with file and name, if one is not valid, CorruptFileError for a metadata log
    that is damaged.
    """
    brokers = by_broker(log_dirs, LOCAL)
    if len(brokers) > 1 and rules.server_properties is not None:
        raise UsageError(
            f"is of one broker, and log directories of {len(brokers)} were given "
            f"({', '.join(broker.name for broker in brokers)})",
            "server_properties",
            rules.server_properties,
        )
    source = MetadataSource(rules.metadata, rules.no_metadata, rules.server_properties)
    started_at_ms = current_context().started_at_ms
    clusters = [
        read_cluster_settings(broker.log_dirs, source, LOCAL, started_at_ms) for broker in brokers
    ]
    loaded = load_configs(rules.config, rules.topic_configs, rules.settings, clusters)
    configs = [_with_rules(config, rules) for config in loaded]
    config = configs[0]
    time_ms = started_at_ms if rules.as_of is None else as_of_ms(str(rules.as_of))
    findings = [
        finding
        for broker, cluster in zip(brokers, clusters, strict=True)
        for finding in _findings_of(broker, cluster)
    ]
    newer = _warnings_of_versions(configs)
    notices = (*(finding.notice for finding in findings), *newer)
    current_context().notices += notices
    of_brokers = tuple(map(BrokerContext, brokers, configs))
    current_context().kafka = tuple(map(_kafka_of, of_brokers))
    current_context().config, current_context().as_of_ms = config, time_ms
    return RoundContext(
        config=config,
        started_at_ms=started_at_ms,
        as_of_ms=time_ms,
        is_as_of_given=rules.as_of is not None,
        warnings=notices,
        conditions={
            **{finding.notice: finding.text for finding in findings},
            **{text: text for text in newer},
        },
        of_brokers=of_brokers,
        is_metadata_ignored=rules.no_metadata,
    )


def _findings_of(
    broker: BrokerLogDirs, cluster: ClusterSettings | None
) -> tuple[SourceFinding, ...]:
    """Return what is wrong with a broker's sources; without a metadata log, with its identity."""
    if cluster is None or cluster.metadata is None:
        return identity_findings(broker.log_dirs, LOCAL)
    return cluster.findings


def _kafka_of(of_broker: BrokerContext) -> KafkaUse:
    return KafkaUse(of_broker.config.kafka, of_broker.broker.log_dirs)


def _warnings_of_versions(configs: Sequence[Config]) -> tuple[str, ...]:
    found = (config.kafka.warning for config in configs)
    return tuple(dict.fromkeys(warning for warning in found if warning is not None))


def _with_rules(config: Config, rules: Rules) -> Config:
    config = with_filters(config, rules.include, rules.exclude)
    if rules.kafka is not None:
        config = replace(config, kafka=kafka_choice(rules.kafka))
    replicated = rules.assume_fully_replicated or config.assume_fully_replicated
    return replace(config, assume_fully_replicated=replicated, rules=rules)


def require_round_context(rules: Rules, log_dirs: tuple[str, ...], to_write: bool) -> RoundContext:
    """Read the context of a plan or a run, and check it.

    Raise UsageError where data would be lost by mistake (a doubtful clock is only a warning if
    nothing is written), ConfigError if topics are asked for and none of them exists, and
    RefusedError if something is to be written and nothing says how far the logs are replicated, or
    log directories of the broker are missing.
    """
    context = read_round_context(rules, log_dirs)
    _require_named_topics(context.config)
    doubt = None if rules.any_clock or rules.as_of is None else _doubt_of_clock(rules, context)
    if doubt is not None and to_write:
        raise doubt
    topics, moving_in = topics_in(log_dirs, context.files)
    current_context().topics |= topics
    require_include(context.config, topics, moving_in)
    if to_write:
        replicated = context.config.assume_fully_replicated
        require_high_watermarks(log_dirs, replicated, context.files)
        require_known_log_dirs(rules, context)
    warnings = [] if doubt is None else [doubt.text(option_names())]
    configs = [each.config for each in context.of_brokers]
    differing = list(disagreement_warnings(configs, topics))
    warnings += [*unknown_topic_warnings(context.config, topics), *differing]
    return context._replace(
        warnings=(*context.warnings, *warnings),
        conditions={**context.conditions, **{text: text for text in differing}},
    )


def without_lasting(context: RoundContext, lasting: Collection[str]) -> tuple[str, ...]:
    """Return the warnings that are new. lasting: those of earlier runs."""
    known = current_context()
    known.notices = [notice for notice in known.notices if notice not in lasting]
    return tuple(warning for warning in context.warnings if warning not in lasting)


def require_known_log_dirs(rules: Rules, context: RoundContext) -> None:
    """Raise RefusedError where a broker has log directories that the caller left out."""
    for broker, config in context.of_brokers:
        if config.cluster is not None and not rules.all_log_dirs_given:
            require_all_log_dirs(config.cluster, broker.log_dirs, context.files)


def plan_of(
    context: RoundContext,
    problems: Problems | None = None,
    with_files: bool = True,
    only: str | None = None,
) -> RoundPlan:
    """Plan a round, for each broker by itself.

    problems: known ones, by path of the log directory or partition directory. with_files: by which
    a run notices another writer; a plan that is only looked at does without. only: the log that it
    is about, TOPIC-PARTITION; None: all.
    """
    plans, are_several = [], len(context.of_brokers) > 1
    for broker, config in context.of_brokers:
        asked = replace(
            judging_of(context, broker, config),
            problems=problems or {},
            with_files=with_files,
            only=only,
        )
        plan = replace(plan_round(asked), kafka=(_kafka_of(BrokerContext(broker, config)),))
        name = f"{broker.name}: {', '.join(broker.log_dirs)}"
        plans.append(replace(plan, brokers=(name,)) if are_several else plan)
    return merge_plans(plans)


def judging_of(context: RoundContext, broker: BrokerLogDirs, config: Config) -> EvaluationRequest:
    """Return what a plan judges the logs of one broker by; no problem of one is known."""
    machine_ms = None if context.is_as_of_given else now_ms()
    return EvaluationRequest(
        log_dirs=broker.log_dirs,
        config=config,
        clock=RoundClock.of(config, context.as_of_ms, machine_ms),
        problems={},
        files=context.files,
        disk=context.disk,
        is_metadata_ignored=context.is_metadata_ignored,
    )


def _doubt_of_clock(rules: Rules, context: RoundContext) -> UsageError | None:
    return doubt_of_clock(str(rules.as_of), context.as_of_ms, context.started_at_ms)


def _require_named_topics(config: Config) -> None:
    """Raise UsageError where one setting makes every topic compacted."""
    policy = config.overrides.get("cleanup.policy")
    if isinstance(policy, tuple) and COMPACT in policy and config.include is None:
        raise UsageError(
            "would compact every topic, and one of policy delete would lose most of its records; "
            "say which with {} REGEX, or give each topic its own policy with {} FILE",
            "settings",
            f"cleanup.policy={','.join(policy)}",
            ["include", "topic_configs"],
        )
