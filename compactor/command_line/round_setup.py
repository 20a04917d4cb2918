"""What `plan`, `run`, `recover` and `explain` have in common: configuration, plan, recovery."""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from compactor.command_line import arguments
from compactor.command_line.requests import RoundArguments, StoppedError
from compactor.config import Config, load_config, with_filters
from compactor.host.output import print_error
from compactor.host.printable import printable
from compactor.host.progress import RECOVERY_STAGE, ChangeWatch, ProgressSink
from storage.formats import clean_shutdown

if TYPE_CHECKING:
    from compactor.planning.round_plan import RoundPlan
    from compactor.recovery.log_dir_recovery import LogDirRecovery


def config_of(wanted: RoundArguments) -> Config:
    """The configuration, as files and words say it."""
    settings = dict(arguments.setting(text) for text in wanted.settings)
    config = load_config(wanted.config, wanted.topic_configs, settings)
    config = with_filters(config, wanted.include, wanted.exclude)
    if wanted.assume_fully_replicated:
        config = replace(config, assume_fully_replicated=True)
    return config


def plan_of(
    wanted: RoundArguments, log_dirs: tuple[str, ...], problems: Mapping[str, str] | None = None
) -> "RoundPlan":
    """The plan of a round. problems: of log directories and logs, by path, known before."""
    config = config_of(wanted)
    as_of_ms = arguments.as_of_ms(wanted.as_of, time.time_ns() // 1_000_000)

    from compactor.planning.round_plan import plan_round

    return plan_round(log_dirs, config, as_of_ms, problems=problems)


def recover_log_dirs(
    wanted: RoundArguments, log_dirs: tuple[str, ...], progress: ChangeWatch
) -> "list[LogDirRecovery]":
    """What a run does first; with recover_first all that a broker does."""
    from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir

    rules = None
    if wanted.recover_first:
        now_ms = arguments.as_of_ms(wanted.as_of, time.time_ns() // 1_000_000)
        rules = LoadRules(config_of(wanted), now_ms)
    recovered = []
    for log_dir in log_dirs:
        takes_long = wanted.recover_first and not clean_shutdown.exists(log_dir)
        if takes_long:
            progress.stage(RECOVERY_STAGE, 0)
        advance = progress.advance if takes_long else None
        recovered.append(recover_log_dir(log_dir, rules, advance))
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


def told(warnings: list[str]) -> list[str]:
    """The same warnings, told on standard error."""
    for warning in warnings:
        print_error(f"compactor: warning: {printable(warning)}")
    return warnings
