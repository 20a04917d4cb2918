"""The configuration and the clock of a command, read and checked once.

Guards against what would lose data by mistake hold here, for the command line and for whoever
calls from Python: a policy for every topic there is, a doubtful clock, filters that match nothing,
logs of which nobody says how far they are replicated. The clock is read once, see
`compactor.host.clock`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from compactor import account
from compactor.api.as_of import as_of_ms, why_as_of_is_doubtful
from compactor.api.rules import Rules
from compactor.cluster_settings import (
    MetadataSource,
    read_cluster_settings,
    require_all_log_dirs,
)
from compactor.config import Config, load_config, with_filters
from compactor.exit_codes import UsageError
from compactor.high_watermarks import require_high_watermarks
from compactor.host.clock import now_ms
from compactor.planning.candidate import RoundClock
from compactor.planning.round_plan import RoundPlan, plan_by
from compactor.planning.unmatched import require_include, unmatched
from compactor.survey import topics_in
from compactor.topic_config import COMPACT
from storage.files.files import Files
from storage.files.local import LOCAL


class Premises(NamedTuple):
    """Configuration and clock. Read once: a file of settings may be a pipe."""

    config: Config
    started_at_ms: int  # when they were made
    as_of_ms: int  # the time taken as now, from the first step to the last
    is_as_of_given: bool
    warnings: tuple[str, ...] = ()
    files: Files = LOCAL  # by which log directories are read, and changed by the driver


def premises_of(rules: Rules, log_dirs: Sequence[str]) -> Premises:
    """Read configuration and clock, and what the broker's own files in the log directories say.

    Raise ConfigError, with file and name, if one is not valid, CorruptFileError for a metadata log
    that is damaged.
    """
    source = MetadataSource(rules.metadata, rules.no_metadata, rules.server_properties)
    cluster = read_cluster_settings(log_dirs, source, LOCAL)
    config = load_config(rules.config, rules.topic_configs, rules.settings, cluster)
    config = with_filters(config, rules.include, rules.exclude)
    config = replace(config, checks_clock=not rules.any_clock)
    if rules.assume_fully_replicated:
        config = replace(config, assume_fully_replicated=True)
    started_at_ms = account.current().started_at_ms
    time_ms = started_at_ms if rules.as_of is None else as_of_ms(str(rules.as_of))
    account.current().config, account.current().as_of_ms = config, time_ms
    return Premises(
        config=config,
        started_at_ms=started_at_ms,
        as_of_ms=time_ms,
        is_as_of_given=rules.as_of is not None,
    )


def premises_of_round(rules: Rules, log_dirs: tuple[str, ...], to_write: bool) -> Premises:
    """Those of a plan or a run.

    Raise UsageError where data would be lost by mistake (a doubtful clock is only a warning if
    nothing is written), ConfigError if topics are asked for and none of them exists, and
    RefusedError if something is to be written and nothing says how far the logs are replicated, or
    not all log directories of the broker were given.
    """
    premises = premises_of(rules, log_dirs)
    _require_named_topics(premises.config)
    doubt = None if rules.any_clock or rules.as_of is None else _doubt_of_clock(rules, premises)
    if doubt is not None and to_write:
        raise UsageError(doubt)
    topics, moving_here = topics_in(log_dirs, premises.files)
    account.current().topics |= topics
    require_include(premises.config, topics, moving_here)
    if to_write:
        replicated = premises.config.assume_fully_replicated
        require_high_watermarks(log_dirs, replicated, premises.files)
        require_known_log_dirs(rules, premises, log_dirs)
    warnings = [doubt] if doubt is not None else []
    return premises._replace(warnings=(*warnings, *unmatched(premises.config, topics)))


def require_known_log_dirs(rules: Rules, premises: Premises, log_dirs: Sequence[str]) -> None:
    """Raise RefusedError where the broker has log directories that were not given."""
    cluster = premises.config.cluster
    if cluster is not None and not rules.all_log_dirs_given:
        require_all_log_dirs(cluster, log_dirs, premises.files)


def plan_of(
    premises: Premises, log_dirs: tuple[str, ...], problems: Mapping[str, str] | None = None
) -> RoundPlan:
    """Plan a round. problems: known ones, by path of the log directory or partition directory."""
    machine_ms = None if premises.is_as_of_given else now_ms()
    clock = RoundClock.of(premises.config, premises.as_of_ms, machine_ms)
    return plan_by(premises.files, log_dirs, premises.config, clock, problems)


def _doubt_of_clock(rules: Rules, premises: Premises) -> str | None:
    return why_as_of_is_doubtful(str(rules.as_of), premises.as_of_ms, premises.started_at_ms)


def _require_named_topics(config: Config) -> None:
    """Raise UsageError where one setting makes topics compacted, whichever there are."""
    policy = config.overrides.get("cleanup.policy")
    if isinstance(policy, tuple) and COMPACT in policy and config.include is None:
        raise UsageError(
            f"--set cleanup.policy={','.join(policy)}: would compact every topic, and one of "
            "policy delete would lose most of its records; say which with --include REGEX, or "
            "give each topic its own policy with --topic-configs FILE"
        )
