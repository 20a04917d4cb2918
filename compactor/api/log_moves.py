"""`log move`: a log from one log directory of a broker to another, under the locks of both."""

from compactor.api import path_arguments
from compactor.api.broker_starts import start_problems
from compactor.api.log_changes import DEFAULTS
from compactor.api.progress import note_changes
from compactor.api.round_context import read_round_context
from compactor.command_context import current_context
from compactor.errors import RefusedError, UsageError
from compactor.host.shell_commands import compactor
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.offline_log import log_move as moving
from compactor.offline_log.log_location import (
    LogLocation,
    known_offsets,
    named_log,
    require_changeable,
)
from compactor.offline_log.log_move import LogMove
from compactor.offline_log.log_offsets import ends_of
from compactor.offline_log.open_log import log_settings, view_log
from compactor.offline_log.truncate import Outcome
from compactor.outcome.start_problems import forbid_start
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import ChangeOptions
from storage.arguments import PathArg
from storage.files.local import LOCAL
from storage.formats import clean_shutdown, meta_properties
from storage.log.log_dir import list_log_dir

PARTLY = (
    "The move may be half done: one whole copy of the log is there in any case. Run the same "
    "command again: it undoes or finishes what is left."
)


def log_move(
    log_dir: PathArg, topic_partition: str, to_dir: str, options: ChangeOptions = DEFAULTS
) -> Outcome:
    """Move one log.

    No record changes, so other replicas do not mind; `only_replica` and `recover_first` are
    ignored.

    Raise UsageError, RefusedError and CorruptFileError before anything is changed, LockLostError
    and OSError at any time: then `what_was_changed` says what had been changed.
    """
    (source,) = path_arguments.log_dirs([log_dir], to_write=not options.dry_run)
    (target,) = path_arguments.other_log_dirs([to_dir], not options.dry_run, "to_dir")
    path_arguments.require_another("to_dir", to_dir, source)
    path_arguments.log_dirs([log_dir, to_dir], to_write=False)  # the command is about both
    _require_one_broker(source, target)
    context = read_round_context(options.rules, [source, target])
    locks = lock_log_dirs([source, target], options.allowed_file_systems, True)
    with locks:
        _require_clean(source, target)
        move = moving.plan_move(named_log(source, topic_partition), target, LOCAL)
        here = move.target if move.is_removed else move.source
        known = known_offsets(here, LOCAL)
        _require_movable(move)
        settings = log_settings(here.topic, context.config, context.as_of_ms)
        with view_log(here, known, settings, LOCAL) as view:
            ends = ends_of(view.log)
        outcome = Outcome(_description(move), ends, ends, True)
        if options.dry_run:
            return outcome
        if not options.confirm(outcome):
            problem = f"{here.name}: move was not confirmed. Nothing was changed"
            raise RefusedError(problem, ReasonCode.NOT_CONFIRMED)
        try:
            moving.move_log(move, LOCAL)
        except BaseException as error:
            note_changes(error, PARTLY)
            raise
        current_context().is_changed = True
        return outcome


def _description(move: LogMove) -> str:
    source, target = move.source.log_dir, move.target.log_dir
    if move.is_removed:
        return f"finishes a move to {target} that was cut short: removes what is left in {source}"
    if move.is_copied:
        return f"finishes a move that was cut short: the log is in {target}; removes it in {source}"
    return f"moves the log, {move.size_bytes:,} bytes in all, from {source} to {target}"


def _require_clean(source: str, target: str) -> None:
    """Raise RefusedError after an unclean shutdown. The target may be unused yet."""
    used = [source, *([target] if list_log_dir(target, LOCAL).partitions else [])]
    for log_dir in used:
        if not clean_shutdown.exists(log_dir, LOCAL):
            start = "Start the broker and stop it cleanly"
            if forbid_start(start_problems(used)):
                start = f"{compactor('verify', log_dir)} says what keeps a broker from a start. "
                start += "Mend it, let the broker start, and stop it cleanly"
            raise RefusedError(
                f"{log_dir}: no {clean_shutdown.CLEAN_SHUTDOWN}: the broker did not stop cleanly, "
                f"and its last segments may be torn. {start}, then move the log. Nothing was "
                "changed",
                ReasonCode.UNCLEAN_SHUTDOWN,
            )


def _require_movable(move: LogMove) -> None:
    for at in (move.source, move.target):
        if LOCAL.exists(at.path):
            require_changeable(at, known_offsets(at, LOCAL), LOCAL)
        else:
            _require_no_future(at)


def _require_no_future(at: LogLocation) -> None:
    if at.key in list_log_dir(at.log_dir, LOCAL).moving_in:
        raise RefusedError(
            f"{at.log_dir}: a broker was moving {at.name} here. Let it finish. Nothing was changed",
            ReasonCode.MOVING,
        )


def _require_one_broker(source: str, target: str) -> None:
    """Raise UsageError where source and target belong to different brokers."""
    ids = []
    for path in (source, target):
        try:
            found = meta_properties.read(path, LOCAL)
        except FileNotFoundError:
            return
        ids.append((found.cluster_id, found.node_id))
    if ids[0] != ids[1]:
        raise UsageError(
            f"is of another broker than {source} (cluster and node {ids[1][0]}, {ids[1][1]}; "
            f"{ids[0][0]}, {ids[0][1]} by meta.properties)",
            "to_dir",
            target,
        )
