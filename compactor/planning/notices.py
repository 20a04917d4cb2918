"""What a plan or a run says once, whichever logs there are. Pure."""

from compactor.log_dirs.foreign_files import foreign_notice
from compactor.planning.round_plan import RoundPlan
from storage.formats.checkpoint import REPLICATION

ALL_LOG_DIRS = (
    "Give all directories of the broker's log.dirs: if a partition is being moved to one that is "
    "not given, this is not noticed, and a deleted record could come back"
)


def notices_of(plan: RoundPlan) -> tuple[str, ...]:
    """One sentence each, without a full stop."""
    ends = (
        f"{log_dir.path} has no {REPLICATION}: the end of each log is taken for its high watermark"
        for log_dir in plan.log_dirs
        if log_dir.partitions and not log_dir.has_high_watermarks
    )
    foreign = tuple(
        foreign_notice(log_dir.path, log_dir.foreign)
        for log_dir in plan.log_dirs
        if log_dir.foreign
    )
    each = f"Each broker's logs are judged by themselves: {'; '.join(plan.brokers)}"
    brokers = (each,) if plan.brokers else ()
    unknown = () if plan.are_all_log_dirs_known else (ALL_LOG_DIRS,)
    settings: tuple[str, ...] = ()
    if plan.unknown_settings:
        settings = (f"Settings that are not known here: {', '.join(plan.unknown_settings)}",)
    found = (*brokers, *unknown, *ends, *settings, *foreign, *plan.absent, *plan.lasting)
    return found if plan.log_dirs else ()
