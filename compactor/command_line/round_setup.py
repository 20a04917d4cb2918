"""What `plan`, `run`, `recover` and `explain` have in common: configuration, plan, recovery."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from compactor.command_line import arguments, guards
from compactor.command_line.requests import RoundArguments, StoppedError
from compactor.config import Config, load_config, with_filters
from compactor.errors import ConfigError
from compactor.exit_codes import UsageError
from compactor.high_watermarks import require_high_watermarks
from compactor.host.clock import now_ms
from compactor.host.output import print_error
from compactor.host.printable import printable
from compactor.host.progress import RECOVERY_STAGE, ChangeWatch, ProgressSink
from storage.errors import CorruptFileError
from storage.formats import clean_shutdown

if TYPE_CHECKING:
    from compactor.planning.round_plan import RoundPlan
    from compactor.recovery.log_dir_recovery import LogDirRecovery


class Premises(NamedTuple):
    """What a command goes by. Made once: a file of settings may be a pipe."""

    config: Config
    started_at_ms: int  # when they were made
    as_of_ms: int  # the time that counts as now, from the first step to the last
    is_as_of_given: bool  # --as-of says what it is
    warnings: tuple[str, ...] = ()


def premises_of(wanted: RoundArguments) -> Premises:
    """The configuration and the clock, as files and words say it."""
    settings = dict(arguments.setting(text) for text in wanted.settings)
    config = load_config(wanted.config, wanted.topic_configs, settings)
    config = with_filters(config, wanted.include, wanted.exclude)
    config = replace(config, checks_clock=not wanted.any_clock)
    if wanted.assume_fully_replicated:
        config = replace(config, assume_fully_replicated=True)
    as_of_ms, started_at_ms = arguments.as_of_ms(wanted.as_of), now_ms()
    if as_of_ms is None:
        return Premises(config, started_at_ms, started_at_ms, is_as_of_given=False)
    return Premises(config, started_at_ms, as_of_ms, is_as_of_given=True)


def premises_of_round(
    wanted: RoundArguments, log_dirs: tuple[str, ...], to_write: bool
) -> Premises:
    """Those of `plan` and `run`.

    UsageError where data would be lost by mistake, or, where the clock is doubtful and nothing is
    written, a warning; ConfigError where topics are asked for of which there is none; RefusedError
    where something is written, and nobody says how far the logs are replicated.
    """
    from compactor.planning.unmatched import require_include, unmatched
    from compactor.survey import topics_in

    premises = premises_of(wanted)
    guards.require_named_topics(premises.config)
    doubt = None if wanted.any_clock else _doubt_of_clock(wanted, premises)
    if doubt is not None and to_write:
        raise UsageError(doubt)
    topics = topics_in(log_dirs)
    require_include(premises.config, topics)
    if to_write:
        require_high_watermarks(log_dirs, premises.config.assume_fully_replicated)
    warnings = [doubt] if doubt is not None else []
    return premises._replace(warnings=(*warnings, *unmatched(premises.config, topics)))


def _doubt_of_clock(wanted: RoundArguments, premises: Premises) -> str | None:
    if wanted.as_of is None:
        return None
    return guards.why_as_of_is_doubtful(wanted.as_of, premises.as_of_ms, premises.started_at_ms)


def plan_of(
    premises: Premises, log_dirs: tuple[str, ...], problems: Mapping[str, str] | None = None
) -> "RoundPlan":
    """The plan of a round. problems: of log directories and logs, by path, known before."""
    from compactor.planning.round_plan import plan_round

    machine_ms = None if premises.is_as_of_given else now_ms()
    return plan_round(log_dirs, premises.config, premises.as_of_ms, problems, machine_ms)


def recover_log_dirs(
    log_dirs: tuple[str, ...], premises: Premises | None, progress: ChangeWatch
) -> "list[LogDirRecovery]":
    """What a run does first; with premises, by which it is done, all that a broker does."""
    from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir

    rules = None
    if premises is not None:
        rules = LoadRules(premises.config, premises.as_of_ms)
    recovered = []
    for log_dir in log_dirs:
        takes_long = rules is not None and not clean_shutdown.exists(log_dir)
        if takes_long:
            progress.stage(RECOVERY_STAGE, 0)
        advance = progress.advance if takes_long else None
        try:
            recovered.append(recover_log_dir(log_dir, rules, advance))
        except (CorruptFileError, ConfigError):
            raise  # before anything was changed
        except BaseException:
            progress.recovery_broke_off = True
            raise
        progress.recovered |= bool(recovered[-1].logs)
    return recovered


@contextmanager
def watched(progress: AbstractContextManager[ProgressSink]) -> Iterator[ChangeWatch]:
    """A sink under which an error becomes a StoppedError that knows what was changed."""
    with progress as sink:
        watch = ChangeWatch(sink)
        try:
            yield watch
        except (Exception, KeyboardInterrupt) as error:
            raise StoppedError(error, watch.what_was_changed()) from error


def told(warnings: Sequence[str], in_table: bool = False) -> list[str]:
    """The same warnings, told on standard error unless a table is to show them."""
    for warning in () if in_table else warnings:
        print_error(f"compactor: warning: {printable(warning)}")
    return list(warnings)
