"""`recover`, `undo` and `discard`: settle what was cut short; bring back or drop kept originals."""

from collections.abc import Sequence

from compactor.api import path_arguments
from compactor.api.arguments import Paths
from compactor.api.progress import OnProgress, note_changes, watch_changes
from compactor.api.round_context import RoundContext, read_round_context
from compactor.command_context import current_context
from compactor.errors import ConfigError, RefusedError
from compactor.host.progress import RECOVERY_STAGE, ChangeWatch
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.log_dirs.missing_directories import entries_in, gone_from, logs_of_replaced
from compactor.log_dirs.survey import topics_in
from compactor.originals import kept_run
from compactor.originals.kept_run import held
from compactor.originals.undo import UndoReport, UndoStatus, undo_outlook, undo_run
from compactor.reason_codes import ReasonCode
from compactor.recovery.log_dir_recovery import (
    LoadRules,
    LogDirRecovery,
    WhySetAside,
    recover_log_dir,
)
from compactor.settings.rules import KAFKAS_DEFAULTS, Rules
from storage.arguments import PathArg
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import clean_shutdown

_LEFT_ALONE = (  # a log is changed: it stays as it is
    *(ReasonCode.DAMAGED, ReasonCode.FOREIGN_FILE),
    *(ReasonCode.LOG_MISSING, ReasonCode.LOG_DIR_DAMAGED),
)


def recover(
    log_dirs: Paths,
    rules: Rules = KAFKAS_DEFAULTS,
    allowed_file_systems: tuple[str, ...] = (),
    on_progress: OnProgress | None = None,
    as_kafka: bool = False,
) -> list[LogDirRecovery]:
    """Recover log directories; return what was done to each, and to the logs that needed it.

    as_kafka: do all that a broker does that starts and stops, also where that loses what is sound.
    If a log cannot be recovered, its `problem` says why, and the others go on. Raise ConfigError,
    RefusedError and CorruptFileError before anything is changed, and OSError at any time; then
    `what_was_changed` says what has been changed.
    """
    paths = path_arguments.log_dirs(log_dirs, to_write=True)
    locks = lock_log_dirs(paths, allowed_file_systems, after_unclean_shutdown=True)
    with watch_changes(on_progress) as progress, locks:
        context = read_round_context(rules, paths)
        current_context().topics |= topics_in(paths, context.files)[0]
        recovered = recover_log_dirs(paths, context, progress, as_kafka=as_kafka)
        recovered = [_with_gone(log_dir, paths, context, rules) for log_dir in recovered]
        current_context().is_changed |= progress.has_changed
        return recovered


def _with_gone(
    recovered: LogDirRecovery, log_dirs: Sequence[str], context: RoundContext, rules: Rules
) -> LogDirRecovery:
    config, files = context.config_of(recovered.path), context.files
    own = entries_in(recovered.path, files)
    others = [path for path in log_dirs if path != own.path]
    gone = gone_from(own, others, files, config.cluster, rules.no_metadata)
    if not rules.no_metadata:
        gone = gone.with_logs(logs_of_replaced(own, others, files))
    return recovered.with_gone(gone.of_topics(config.is_wanted))


def recover_log_dirs(
    log_dirs: tuple[str, ...],
    context: RoundContext,
    progress: ChangeWatch,
    as_broker: bool = True,
    as_kafka: bool = False,
    why_set_aside: WhySetAside | None = None,
) -> list[LogDirRecovery]:
    """Settle what a cleaning left half-done, as each run does first.

    as_broker: recover as a starting broker does, too, with the configuration of the context.
    as_kafka: do exactly what a broker does, even where it discards sound data.
    """
    files, recovered = context.files, []
    for log_dir in log_dirs:
        config = context.config_of(log_dir)
        rules = LoadRules(config, context.as_of_ms, as_kafka) if as_broker else None
        takes_long = as_kafka or (rules and not clean_shutdown.exists(log_dir, files))
        if takes_long:
            progress.stage(RECOVERY_STAGE, 0)
        advance = progress.advance if takes_long else None
        try:
            recovered.append(recover_log_dir(log_dir, rules, advance, files, why_set_aside))
        except (CorruptFileError, ConfigError):
            raise  # before anything was changed
        except BaseException:
            progress.recovery_broke_off = True
            raise
        # what fails in the middle, as Kafka's loader may, has changed something, for all we know
        progress.recovered |= bool(recovered[-1].removed) or any(
            as_kafka or log.reason_code not in _LEFT_ALONE for log in recovered[-1].logs
        )
    return recovered


MAY_HAVE_BEEN_UNDONE = "Some logs may have been undone; run it again for the others."


def undo(
    run_dir: PathArg, allowed_file_systems: tuple[str, ...] = (), dry_run: bool = False
) -> list[UndoReport]:
    """Undo a run that kept its originals; return what became of each log.

    A log that was changed since is left as it is. run_dir: DIR/RUN_ID of `keep_originals`.
    dry_run: return what would become of each log, change nothing and take no lock.
    Raise UsageError, RefusedError and CorruptFileError before anything is changed, LockLostError
    and OSError at any time; then `what_was_changed` says what has been changed.
    """
    path = path_arguments.kept_run(run_dir)
    if dry_run:
        with held(path, LOCAL):
            reports = undo_outlook(path, allowed_file_systems, LOCAL)
        current_context().note_log_dirs(report.log_dir for report in reports)
        return reports
    try:
        with held(path, LOCAL):
            reports = undo_run(path, allowed_file_systems, LOCAL)
    except (RefusedError, CorruptFileError):
        raise  # before anything was changed
    except BaseException as error:
        note_changes(error, MAY_HAVE_BEEN_UNDONE)
        raise
    current_context().note_log_dirs(report.log_dir for report in reports)
    current_context().is_changed |= any(r.status is UndoStatus.UNDONE for r in reports)
    return reports


def discard(run_dir: PathArg) -> str:
    """Remove the originals that a run has kept; return their directory.

    If it was cut short, it can be called again. Raise UsageError, OSError, and RefusedError while
    the run or an undo is at work.
    """
    path = path_arguments.kept_run(run_dir, to_discard=True)
    kept_run.discard(path, LOCAL)
    current_context().is_changed = True
    return path
